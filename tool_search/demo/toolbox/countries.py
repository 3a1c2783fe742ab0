"""The states of the world: ISO 3166 code, names, capital, currency, telephone code.

Sources: ISO 3166-1, ISO 4217 and ITU E.164. The members of the United Nations, with Hong Kong,
Macao, Taiwan, Palestine, Kosovo and Vatican City, which have codes of their own.
A capital is the one that the state itself names; Palestine's is its seat of government.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple


class Country(NamedTuple):
    """One row of the table."""

    code: str
    name: str
    chinese_name: str
    capital: str
    chinese_capital: str
    currency: str
    calling_code: str
    continent: str


@cache
def countries() -> tuple[Country, ...]:
    """Return all rows, by continent and code."""
    rows = []
    for continent, lines in _TABLES.items():
        split = (line.split("|") for line in lines.strip().splitlines())
        rows += [Country._make([*values, continent]) for values in split]
    return tuple(rows)


_TABLES = {
    "Africa": """
AO|Angola|安哥拉|Luanda|罗安达|AOA|244
BF|Burkina Faso|布基纳法索|Ouagadougou|瓦加杜古|XOF|226
BI|Burundi|布隆迪|Gitega|基特加|BIF|257
BJ|Benin|贝宁|Porto-Novo|波多诺伏|XOF|229
BW|Botswana|博茨瓦纳|Gaborone|哈博罗内|BWP|267
CD|DR Congo|刚果（金）|Kinshasa|金沙萨|CDF|243
CF|Central African Republic|中非|Bangui|班吉|XAF|236
CG|Congo|刚果（布）|Brazzaville|布拉柴维尔|XAF|242
CI|Côte d'Ivoire|科特迪瓦|Yamoussoukro|亚穆苏克罗|XOF|225
CM|Cameroon|喀麦隆|Yaoundé|雅温得|XAF|237
CV|Cabo Verde|佛得角|Praia|普拉亚|CVE|238
DJ|Djibouti|吉布提|Djibouti|吉布提市|DJF|253
DZ|Algeria|阿尔及利亚|Algiers|阿尔及尔|DZD|213
EG|Egypt|埃及|Cairo|开罗|EGP|20
ER|Eritrea|厄立特里亚|Asmara|阿斯马拉|ERN|291
ET|Ethiopia|埃塞俄比亚|Addis Ababa|亚的斯亚贝巴|ETB|251
GA|Gabon|加蓬|Libreville|利伯维尔|XAF|241
GH|Ghana|加纳|Accra|阿克拉|GHS|233
GM|Gambia|冈比亚|Banjul|班珠尔|GMD|220
GN|Guinea|几内亚|Conakry|科纳克里|GNF|224
GQ|Equatorial Guinea|赤道几内亚|Ciudad de la Paz|和平城|XAF|240
GW|Guinea-Bissau|几内亚比绍|Bissau|比绍|XOF|245
KE|Kenya|肯尼亚|Nairobi|内罗毕|KES|254
KM|Comoros|科摩罗|Moroni|莫罗尼|KMF|269
LR|Liberia|利比里亚|Monrovia|蒙罗维亚|LRD|231
LS|Lesotho|莱索托|Maseru|马塞卢|LSL|266
LY|Libya|利比亚|Tripoli|的黎波里|LYD|218
MA|Morocco|摩洛哥|Rabat|拉巴特|MAD|212
MG|Madagascar|马达加斯加|Antananarivo|塔那那利佛|MGA|261
ML|Mali|马里|Bamako|巴马科|XOF|223
MR|Mauritania|毛里塔尼亚|Nouakchott|努瓦克肖特|MRU|222
MU|Mauritius|毛里求斯|Port Louis|路易港|MUR|230
MW|Malawi|马拉维|Lilongwe|利隆圭|MWK|265
MZ|Mozambique|莫桑比克|Maputo|马普托|MZN|258
NA|Namibia|纳米比亚|Windhoek|温得和克|NAD|264
NE|Niger|尼日尔|Niamey|尼亚美|XOF|227
NG|Nigeria|尼日利亚|Abuja|阿布贾|NGN|234
RW|Rwanda|卢旺达|Kigali|基加利|RWF|250
SC|Seychelles|塞舌尔|Victoria|维多利亚|SCR|248
SD|Sudan|苏丹|Khartoum|喀土穆|SDG|249
SL|Sierra Leone|塞拉利昂|Freetown|弗里敦|SLE|232
SN|Senegal|塞内加尔|Dakar|达喀尔|XOF|221
SO|Somalia|索马里|Mogadishu|摩加迪沙|SOS|252
SS|South Sudan|南苏丹|Juba|朱巴|SSP|211
ST|São Tomé and Príncipe|圣多美和普林西比|São Tomé|圣多美|STN|239
SZ|Eswatini|斯威士兰|Mbabane|姆巴巴内|SZL|268
TD|Chad|乍得|N'Djamena|恩贾梅纳|XAF|235
TG|Togo|多哥|Lomé|洛美|XOF|228
TN|Tunisia|突尼斯|Tunis|突尼斯市|TND|216
TZ|Tanzania|坦桑尼亚|Dodoma|多多马|TZS|255
UG|Uganda|乌干达|Kampala|坎帕拉|UGX|256
ZA|South Africa|南非|Pretoria|比勒陀利亚|ZAR|27
ZM|Zambia|赞比亚|Lusaka|卢萨卡|ZMW|260
ZW|Zimbabwe|津巴布韦|Harare|哈拉雷|ZWG|263
""",
    "Asia": """
AE|United Arab Emirates|阿拉伯联合酋长国|Abu Dhabi|阿布扎比|AED|971
AF|Afghanistan|阿富汗|Kabul|喀布尔|AFN|93
AM|Armenia|亚美尼亚|Yerevan|埃里温|AMD|374
AZ|Azerbaijan|阿塞拜疆|Baku|巴库|AZN|994
BD|Bangladesh|孟加拉国|Dhaka|达卡|BDT|880
BH|Bahrain|巴林|Manama|麦纳麦|BHD|973
BN|Brunei|文莱|Bandar Seri Begawan|斯里巴加湾市|BND|673
BT|Bhutan|不丹|Thimphu|廷布|BTN|975
CN|China|中国|Beijing|北京|CNY|86
CY|Cyprus|塞浦路斯|Nicosia|尼科西亚|EUR|357
GE|Georgia|格鲁吉亚|Tbilisi|第比利斯|GEL|995
HK|Hong Kong|中国香港|Hong Kong|香港|HKD|852
ID|Indonesia|印度尼西亚|Jakarta|雅加达|IDR|62
IL|Israel|以色列|Jerusalem|耶路撒冷|ILS|972
IN|India|印度|New Delhi|新德里|INR|91
IQ|Iraq|伊拉克|Baghdad|巴格达|IQD|964
IR|Iran|伊朗|Tehran|德黑兰|IRR|98
JO|Jordan|约旦|Amman|安曼|JOD|962
JP|Japan|日本|Tokyo|东京|JPY|81
KG|Kyrgyzstan|吉尔吉斯斯坦|Bishkek|比什凯克|KGS|996
KH|Cambodia|柬埔寨|Phnom Penh|金边|KHR|855
KP|North Korea|朝鲜|Pyongyang|平壤|KPW|850
KR|South Korea|韩国|Seoul|首尔|KRW|82
KW|Kuwait|科威特|Kuwait City|科威特城|KWD|965
KZ|Kazakhstan|哈萨克斯坦|Astana|阿斯塔纳|KZT|7
LA|Laos|老挝|Vientiane|万象|LAK|856
LB|Lebanon|黎巴嫩|Beirut|贝鲁特|LBP|961
LK|Sri Lanka|斯里兰卡|Sri Jayawardenepura Kotte|科特|LKR|94
MM|Myanmar|缅甸|Naypyidaw|内比都|MMK|95
MN|Mongolia|蒙古|Ulaanbaatar|乌兰巴托|MNT|976
MO|Macao|中国澳门|Macao|澳门|MOP|853
MV|Maldives|马尔代夫|Malé|马累|MVR|960
MY|Malaysia|马来西亚|Kuala Lumpur|吉隆坡|MYR|60
NP|Nepal|尼泊尔|Kathmandu|加德满都|NPR|977
OM|Oman|阿曼|Muscat|马斯喀特|OMR|968
PH|Philippines|菲律宾|Manila|马尼拉|PHP|63
PK|Pakistan|巴基斯坦|Islamabad|伊斯兰堡|PKR|92
PS|Palestine|巴勒斯坦|Ramallah|拉姆安拉|ILS|970
QA|Qatar|卡塔尔|Doha|多哈|QAR|974
SA|Saudi Arabia|沙特阿拉伯|Riyadh|利雅得|SAR|966
SG|Singapore|新加坡|Singapore|新加坡市|SGD|65
SY|Syria|叙利亚|Damascus|大马士革|SYP|963
TH|Thailand|泰国|Bangkok|曼谷|THB|66
TJ|Tajikistan|塔吉克斯坦|Dushanbe|杜尚别|TJS|992
TL|Timor-Leste|东帝汶|Dili|帝力|USD|670
TM|Turkmenistan|土库曼斯坦|Ashgabat|阿什哈巴德|TMT|993
TR|Türkiye|土耳其|Ankara|安卡拉|TRY|90
TW|Taiwan|中国台湾|Taipei|台北|TWD|886
UZ|Uzbekistan|乌兹别克斯坦|Tashkent|塔什干|UZS|998
VN|Vietnam|越南|Hanoi|河内|VND|84
YE|Yemen|也门|Sana'a|萨那|YER|967
""",
    "Europe": """
AD|Andorra|安道尔|Andorra la Vella|安道尔城|EUR|376
AL|Albania|阿尔巴尼亚|Tirana|地拉那|ALL|355
AT|Austria|奥地利|Vienna|维也纳|EUR|43
BA|Bosnia and Herzegovina|波斯尼亚和黑塞哥维那|Sarajevo|萨拉热窝|BAM|387
BE|Belgium|比利时|Brussels|布鲁塞尔|EUR|32
BG|Bulgaria|保加利亚|Sofia|索非亚|EUR|359
BY|Belarus|白俄罗斯|Minsk|明斯克|BYN|375
CH|Switzerland|瑞士|Bern|伯尔尼|CHF|41
CZ|Czechia|捷克|Prague|布拉格|CZK|420
DE|Germany|德国|Berlin|柏林|EUR|49
DK|Denmark|丹麦|Copenhagen|哥本哈根|DKK|45
EE|Estonia|爱沙尼亚|Tallinn|塔林|EUR|372
ES|Spain|西班牙|Madrid|马德里|EUR|34
FI|Finland|芬兰|Helsinki|赫尔辛基|EUR|358
FR|France|法国|Paris|巴黎|EUR|33
GB|United Kingdom|英国|London|伦敦|GBP|44
GR|Greece|希腊|Athens|雅典|EUR|30
HR|Croatia|克罗地亚|Zagreb|萨格勒布|EUR|385
HU|Hungary|匈牙利|Budapest|布达佩斯|HUF|36
IE|Ireland|爱尔兰|Dublin|都柏林|EUR|353
IS|Iceland|冰岛|Reykjavik|雷克雅未克|ISK|354
IT|Italy|意大利|Rome|罗马|EUR|39
LI|Liechtenstein|列支敦士登|Vaduz|瓦杜兹|CHF|423
LT|Lithuania|立陶宛|Vilnius|维尔纽斯|EUR|370
LU|Luxembourg|卢森堡|Luxembourg|卢森堡市|EUR|352
LV|Latvia|拉脱维亚|Riga|里加|EUR|371
MC|Monaco|摩纳哥|Monaco|摩纳哥市|EUR|377
MD|Moldova|摩尔多瓦|Chișinău|基希讷乌|MDL|373
ME|Montenegro|黑山|Podgorica|波德戈里察|EUR|382
MK|North Macedonia|北马其顿|Skopje|斯科普里|MKD|389
MT|Malta|马耳他|Valletta|瓦莱塔|EUR|356
NL|Netherlands|荷兰|Amsterdam|阿姆斯特丹|EUR|31
NO|Norway|挪威|Oslo|奥斯陆|NOK|47
PL|Poland|波兰|Warsaw|华沙|PLN|48
PT|Portugal|葡萄牙|Lisbon|里斯本|EUR|351
RO|Romania|罗马尼亚|Bucharest|布加勒斯特|RON|40
RS|Serbia|塞尔维亚|Belgrade|贝尔格莱德|RSD|381
RU|Russia|俄罗斯|Moscow|莫斯科|RUB|7
SE|Sweden|瑞典|Stockholm|斯德哥尔摩|SEK|46
SI|Slovenia|斯洛文尼亚|Ljubljana|卢布尔雅那|EUR|386
SK|Slovakia|斯洛伐克|Bratislava|布拉迪斯拉发|EUR|421
SM|San Marino|圣马力诺|San Marino|圣马力诺市|EUR|378
UA|Ukraine|乌克兰|Kyiv|基辅|UAH|380
VA|Vatican City|梵蒂冈|Vatican City|梵蒂冈城|EUR|39
XK|Kosovo|科索沃|Pristina|普里什蒂纳|EUR|383
""",
    "North America": """
AG|Antigua and Barbuda|安提瓜和巴布达|Saint John's|圣约翰|XCD|1
BB|Barbados|巴巴多斯|Bridgetown|布里奇敦|BBD|1
BS|Bahamas|巴哈马|Nassau|拿骚|BSD|1
BZ|Belize|伯利兹|Belmopan|贝尔莫潘|BZD|501
CA|Canada|加拿大|Ottawa|渥太华|CAD|1
CR|Costa Rica|哥斯达黎加|San José|圣何塞|CRC|506
CU|Cuba|古巴|Havana|哈瓦那|CUP|53
DM|Dominica|多米尼克|Roseau|罗索|XCD|1
DO|Dominican Republic|多米尼加|Santo Domingo|圣多明各|DOP|1
GD|Grenada|格林纳达|Saint George's|圣乔治|XCD|1
GT|Guatemala|危地马拉|Guatemala City|危地马拉城|GTQ|502
HN|Honduras|洪都拉斯|Tegucigalpa|特古西加尔巴|HNL|504
HT|Haiti|海地|Port-au-Prince|太子港|HTG|509
JM|Jamaica|牙买加|Kingston|金斯敦|JMD|1
KN|Saint Kitts and Nevis|圣基茨和尼维斯|Basseterre|巴斯特尔|XCD|1
LC|Saint Lucia|圣卢西亚|Castries|卡斯特里|XCD|1
MX|Mexico|墨西哥|Mexico City|墨西哥城|MXN|52
NI|Nicaragua|尼加拉瓜|Managua|马那瓜|NIO|505
PA|Panama|巴拿马|Panama City|巴拿马城|PAB|507
SV|El Salvador|萨尔瓦多|San Salvador|圣萨尔瓦多|USD|503
TT|Trinidad and Tobago|特立尼达和多巴哥|Port of Spain|西班牙港|TTD|1
US|United States|美国|Washington, D.C.|华盛顿|USD|1
VC|Saint Vincent and the Grenadines|圣文森特和格林纳丁斯|Kingstown|金斯敦|XCD|1
""",
    "Oceania": """
AU|Australia|澳大利亚|Canberra|堪培拉|AUD|61
FJ|Fiji|斐济|Suva|苏瓦|FJD|679
FM|Micronesia|密克罗尼西亚|Palikir|帕利基尔|USD|691
KI|Kiribati|基里巴斯|South Tarawa|南塔拉瓦|AUD|686
MH|Marshall Islands|马绍尔群岛|Majuro|马朱罗|USD|692
NR|Nauru|瑙鲁|Yaren|亚伦|AUD|674
NZ|New Zealand|新西兰|Wellington|惠灵顿|NZD|64
PG|Papua New Guinea|巴布亚新几内亚|Port Moresby|莫尔斯比港|PGK|675
PW|Palau|帕劳|Ngerulmud|恩吉鲁穆德|USD|680
SB|Solomon Islands|所罗门群岛|Honiara|霍尼亚拉|SBD|677
TO|Tonga|汤加|Nuku'alofa|努库阿洛法|TOP|676
TV|Tuvalu|图瓦卢|Funafuti|富纳富提|AUD|688
VU|Vanuatu|瓦努阿图|Port Vila|维拉港|VUV|678
WS|Samoa|萨摩亚|Apia|阿皮亚|WST|685
""",
    "South America": """
AR|Argentina|阿根廷|Buenos Aires|布宜诺斯艾利斯|ARS|54
BO|Bolivia|玻利维亚|Sucre|苏克雷|BOB|591
BR|Brazil|巴西|Brasília|巴西利亚|BRL|55
CL|Chile|智利|Santiago|圣地亚哥|CLP|56
CO|Colombia|哥伦比亚|Bogotá|波哥大|COP|57
EC|Ecuador|厄瓜多尔|Quito|基多|USD|593
GY|Guyana|圭亚那|Georgetown|乔治敦|GYD|592
PE|Peru|秘鲁|Lima|利马|PEN|51
PY|Paraguay|巴拉圭|Asunción|亚松森|PYG|595
SR|Suriname|苏里南|Paramaribo|帕拉马里博|SRD|597
UY|Uruguay|乌拉圭|Montevideo|蒙得维的亚|UYU|598
VE|Venezuela|委内瑞拉|Caracas|加拉加斯|VES|58
""",
}

"""Stop words: words that do not say which tool is meant.

The lists are our own and short on purpose. Published stop lists have `get`, `find`,
`open`, `run` and other verbs that name tools. A word is in these lists only if it is
grammar, courtesy or the rest of a contraction in nearly every use.
"""

from __future__ import annotations

__all__ = [
    "ALSO_ENGLISH",
    "CHINESE_STOP_CHARACTERS",
    "CHINESE_STOP_PHRASES",
    "STOP_WORDS",
    "STOP_WORDS_OF",
]

_ENGLISH = """
a an the this that these those it its itself
i me my mine myself we us our ours you your yours he him his she her hers they them their theirs
am is are was were be been being do does did doing done has have had having
can could will would shall should may might must
and or nor but if then else than so as because while whether though although
of in on at by for with from to into onto about between through during over under
what which who whom whose when where why how
not no yes please thanks thank hi hello hey there here
s t re ve ll d m don doesn didn isn aren wasn weren won couldn shouldn wouldn
just also too very some any such each both own same other only
let want wants wanted need needs needed like help
"""

_RUSSIAN = """
и а но или либо да не ни же ли бы ж б то что чтобы как так когда если хотя пока
в во на с со к ко по о об обо от до из изо за у при для про без под над между через перед
я мне меня мной мы нам нас нами ты тебе тебя тобой вы вам вас вами
он она оно они его ее ей ему им их ними него нее ней нем
мой моя мое мои моего моей моих моем моим наш наша наше наши нашего нашей наших
твой твоя твое твои ваш ваша ваше ваши свой своя свое свои своего своей своих
этот эта это эти этого этой этих этом этому тот та те того той тех
какой какая какое какие какого каких который которая которое которые
которого которой которых
кто где куда откуда почему зачем сколько чей
есть быть был была было были будет будут буду
мочь могу можешь может можете можем можно нужно нужен нужна нужны надо хочу хочешь
хотел хотела хотим
пожалуйста спасибо привет здравствуйте помоги помогите
уже еще очень тоже также только лишь все всё вот там тут здесь
"""

STOP_WORDS = frozenset(word.replace("ё", "е") for word in (_ENGLISH + _RUSSIAN).split())
"""English and Russian stop words, in lower case, with `е` for `ё`."""

_BY_LANGUAGE = {
    "english": _ENGLISH,
    "spanish": """
a al con contra de del desde durante e el ella ellas ellos en entre es esa esas ese eso esos esta
está están estas este esto estos estoy fue ha hace hacia han has hasta hay he hubo la las le les
lo los mas me mi mí mis muy nada ni no nos nuestra nuestro o os otra otro para pero poco por porque
pues puede puedes puedo podría podrías que qué quién quiénes quien cuál cuáles cuánto cuánta cuántos
cuántas cómo cuándo dónde donde cuando como quiero quiere quisiera necesito gracias hola favor se
sea ser si sí sin sobre son soy su sus también te tengo tiene tienen ti tu tus tú u un una unas uno
unos usted y ya yo según aquí ahí allí hoy
""",
    "french": """
à a ai ainsi as au aucun aussi aux avec avez avoir avons bonjour c ce ceci cela celle celui ces cet
cette chez ci comme comment d dans de des du elle elles en entre es est et été être eu eux fait faut
ici il ils j je l la là le les leur leurs lui m ma mais me même mes moi mon n ne ni nos notre nous
on ont ou où par pas peu peut peux pour pourquoi puis plus qu quand que quel quelle quelles quels
qui quoi s sa sans sera serait ses si son sont sous suis sur t ta te tes toi ton très tu un une va
veux voudrais vos votre vous y merci plaît combien jusqu jusque lequel laquelle entre selon besoin
aujourd hui
""",
    "german": """
ab aber alle allem allen aller alles als also am an auch auf aus bei beim bin bis bist bitte da
damit danke dann das dass dein deine dem den denn der des dich die dies diese diesem diesen dieser
dieses dir doch du durch ein eine einem einen einer eines er es euch euer für gegen gibt habe haben
hallo hast hat hatte hier ich ihm ihn ihnen ihr ihre ihrem ihren im in ins ist ja kann kannst können
kein keine man mein meine meinem meinen meiner mich mir mit möchte muss nach nicht noch nur ob oder
ohne schon sehr sein seine seinen seiner sich sie sind so über um und uns unser unsere unter vom von
vor war was wäre wann warum weil welche welchem welchen welcher welches wem wen wenn wer werde
werden wie viel viele will wir wird wo wurde zu zum zur zwischen brauche heute etwas
""",
    "portuguese": """
à às a ao aos aquela aquele as até com como da das de dela dele deles depois do dos e é ela elas ele
eles em entre era essa esse esta está estas este estes estou eu foi há isso isto já lhe mais mas me
meu meus minha minhas muito na não nas nem no nos nós nossa nosso num numa o obrigado obrigada olá
os ou para pela pelas pelo pelos pode podia poderia por porque posso preciso precisa quais qual
quando quanto quanta quantos quantas que quem quero queria se sem ser será seu seus sobre só sou sua
suas também te tem têm tenho teu tua um uma umas uns vai você vocês onde daqui aqui favor desta
deste nesta neste são
""",
    "italian": """
a ad agli ai al alla alle allo anche c che chi ci cui come con cosa cos d da dal dalla dalle dallo
dai dagli de degli dei del dell della delle dello di dove dov e è ed era ero fa fino fra gli grazie
ha hai hanno ho i il in io l la le lei li lo loro lui ma mi mia mie miei mio ne negli nei nel nella
nelle nell non nostra nostro o per perché però più po poi posso può puoi quale quali qual quando
quanta quante quanti quanto quel quella quello quell questa queste questi questo qui se sei sia
siamo sono su sua sue sui sul sulla sulle sullo sull suo suoi te ti tra tu tua tuo un una uno vi
voglio vorrei favore ciao mi serve stati stato
""",
    "dutch": """
aan al alle als alsjeblieft ben bent bij dan dat de den der deze die dit doe door dus een en er ga
gaan gaat geen haar had hallo hebben heb hebt heeft hem hen het hier hij hoe hoeveel ik in is ja je
jij jou jouw kan kun kunnen maar me meer mij mijn moet na naar niet nog nodig nu of om omdat ons
onze ook op over per staan staat te tegen tot u uit uw van vanaf veel voor waar waarom wanneer want
was wat we wel welk welke werd wie wij wil wilt worden wordt zal ze zich zij zijn zit zo zonder zou
tussen onder dank bedankt graag onder wil
""",
    "turkish": """
acaba ama ancak bana bazı ben beni benim bir biraz biri biz bize bizim bu buna bunu bunun bunları
burada buradan da daha de değil diye eder en gibi göre hangi hangisi her hem hiç için ile ise
ister istiyorum kaç kadar karşı kendi ki kim lazım lütfen merhaba mı mi mu mü nasıl ne neden nedir
nerede neresi neye niçin niye o olan olarak olur on ona onu onun önce oldu sana sen seni senin siz
size sizin sonra şey şu şunu tüm üzere üzerinde var ve veya ya yani yok hakkında itibaren
teşekkürler misin mısın musun müsün
""",
    "arabic": """
في من إلى على عن مع هل ما ماذا متى أين كيف كم لماذا من هو هي هم أنا أنت نحن هذا هذه ذلك تلك هؤلاء
الذي التي الذين أن إن كان كانت يكون تكون قد لقد لا لم لن ليس ليست أو و ثم أي بين عند عندما بعد قبل
حتى لي لك له لها لنا لهم فيها فيه منها منه كل بعض أريد أحتاج يمكن يمكنك أرجو من فضلك شكرا مرحبا
الخاص الخاصة بي هناك هنا يوجد توجد جدا فقط
""",
}

_ALSO_ENGLISH = """
ai come comment dies due er era fa favor fine former hat hem hub ins la li lo los man mare most
once pas per plus pour pro son sui sur ton tot van via war wen y
"""
ALSO_ENGLISH = frozenset(_ALSO_ENGLISH.split())
"""Stop words of other languages that an English text may have too."""

STOP_WORDS_OF = {name: frozenset(words.split()) for name, words in _BY_LANGUAGE.items()}
"""The stop words of each language with spaces between its words, as they are written."""

_CHINESE = """
请帮我 请帮忙 请问 请你 请您 帮我 帮忙 帮助我 麻烦你 麻烦您 我想要 我想 我要 我需要 需要你 需要
你能 您能 能不能 能否 可不可以 可以 是否 是不是 有没有 一下 一些 一个 这个 那个 这些 那些
什么 怎么样 怎么 怎样 如何 为什么 哪些 哪个 哪里 多少 以及 并且 而且 然后 因为 所以 如果 但是
或者 还是 已经 正在 关于 对于 我们 你们 他们 她们 它们 自己 我的 你的 他的 她的 谢谢 你好 您好
為什麼 什麼 怎麼 這個 那個 這些 請問 請幫我 幫我 我們 你們 他們 關於 對於 並且 如果 還是 已經
謝謝
"""

CHINESE_STOP_PHRASES = tuple(sorted(_CHINESE.split(), key=lambda phrase: (-len(phrase), phrase)))
"""Chinese stop words of several characters, longest first."""

CHINESE_STOP_CHARACTERS = frozenset(
    "的了着过吗呢吧啊呀嘛我你您他她它们這这那哪是在和与及或也都就还很太再又"
    "把被给让从对为以而但并且若则之其于所将请帮想要会能可个些么个個們還為與對從將請幫會"
    "のはがをにへとでもやかねよ"
)
"""Characters that are not a term by themselves; a pair of them is not one either."""

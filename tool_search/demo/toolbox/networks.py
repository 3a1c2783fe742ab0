"""Networks and systems: IP ranges, URLs, status codes, ports, transfer times, file modes."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from http import HTTPStatus

from tool_search.demo.toolbox.arguments import require_length, require_within
from tool_search.demo.toolbox.physical_units import DataUnit, convert_data_size

_PORTS = {
    20: "FTP data", 21: "FTP", 22: "SSH", 23: "Telnet", 25: "SMTP", 53: "DNS", 67: "DHCP server",
    68: "DHCP client", 69: "TFTP", 80: "HTTP", 110: "POP3", 119: "NNTP", 123: "NTP",
    143: "IMAP", 161: "SNMP", 179: "BGP", 194: "IRC", 389: "LDAP", 443: "HTTPS", 445: "SMB",
    465: "SMTP over TLS", 514: "Syslog", 587: "Mail submission", 636: "LDAP over TLS",
    853: "DNS over TLS", 873: "rsync", 993: "IMAP over TLS", 995: "POP3 over TLS",
    1080: "SOCKS", 1433: "Microsoft SQL Server", 1521: "Oracle", 1883: "MQTT", 2049: "NFS",
    2375: "Docker", 3306: "MySQL", 3389: "Remote Desktop", 5060: "SIP", 5432: "PostgreSQL",
    5672: "AMQP", 5900: "VNC", 6379: "Redis", 6443: "Kubernetes API", 8080: "HTTP alternative",
    8883: "MQTT over TLS", 9092: "Kafka", 9200: "Elasticsearch", 11211: "Memcached",
    27017: "MongoDB",
}  # fmt: skip
_MODE_BITS = "rwxrwxrwx"


def ip_subnet(network: str) -> dict[str, str | int]:
    """Compute addresses and mask of an IP network (CIDR). 计算 IP 子网的掩码和地址范围。

    Args:
        network: An address with its prefix, 网段, such as 192.168.1.10/24; IPv4 or IPv6.
    """
    parsed = _network(network)
    point_to_point = parsed.num_addresses <= 2
    hosts = parsed.num_addresses - (0 if point_to_point or parsed.version == 6 else 2)
    return {
        "network": str(parsed.network_address),
        "netmask": str(parsed.netmask),
        "prefix_length": parsed.prefixlen,
        "last_address": str(parsed.broadcast_address),
        "usable_hosts": hosts,
    }


def ip_in_network(address: str, network: str) -> bool:
    """Tell whether an IP address lies in a network. 判断 IP 地址是否属于某网段。

    Args:
        address: The address, IP 地址.
        network: The network with its prefix, 网段, such as 10.0.0.0/8.
    """
    return _address(address) in _network(network)


def describe_ip_address(address: str) -> dict[str, str | int | bool]:
    """Tell what kind of IP address it is. 判断 IP 地址的类型，如公网、私网、回环。

    Args:
        address: The address, IP 地址; IPv4 or IPv6.
    """
    parsed = _address(address)
    return {
        "version": parsed.version,
        "full_form": parsed.exploded,
        "private": parsed.is_private,
        "loopback": parsed.is_loopback,
        "multicast": parsed.is_multicast,
        "reverse_name": parsed.reverse_pointer,
    }


def parse_url(url: str) -> dict[str, object]:
    """Split a URL into its parts and query values. 解析网址的各个组成部分。

    Args:
        url: The address, 网址.
    """
    require_length("url", url, 1, 5000)
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
        query = urllib.parse.parse_qs(parts.query, keep_blank_values=True, max_num_fields=500)
    except ValueError as error:
        raise ValueError(f"url {url[:80]!r} cannot be read: {error}") from None
    return {
        "scheme": parts.scheme,
        "host": parts.hostname or "",
        "port": port,
        "path": urllib.parse.unquote(parts.path),
        "query": query,
        "fragment": parts.fragment,
    }


def http_status(code: int) -> dict[str, str | int]:
    """Explain an HTTP status code. 解释 HTTP 状态码。

    Args:
        code: The code, 状态码, such as 404.
    """
    try:
        status = HTTPStatus(code)
    except ValueError:
        raise ValueError(f"code {code!r} is no registered HTTP status (100 to 511)") from None
    kinds = ("informational", "success", "redirection", "client error", "server error")
    kind = kinds[code // 100 - 1]
    description = status.description or status.phrase
    return {"code": code, "phrase": status.phrase, "kind": kind, "description": description}


def well_known_port(port: int) -> str:
    """Name the service that usually uses a TCP port. 查询常见端口号对应的服务。

    Args:
        port: The port, 端口; 1 to 65535.
    """
    require_within("port", port, 1, 65535)
    if port not in _PORTS:
        raise ValueError(f"port {port} is not in the table of {len(_PORTS)} well-known ports")
    return _PORTS[port]


def transfer_time(size: float, unit: DataUnit, megabits_per_second: float) -> float:
    """Compute how many seconds a download takes. 计算下载或传输所需秒数。

    Args:
        size: How much data, 数据量.
        unit: The unit of the size, 单位.
        megabits_per_second: The speed of the line, 带宽（Mbps）; overhead is not counted.
    """
    require_within("size", size, 0, 1e15)
    require_within("megabits_per_second", megabits_per_second, 0.001, 1e9)
    return round(convert_data_size(size, unit, "bit") / (megabits_per_second * 1e6), 3)


def explain_file_mode(mode: str) -> dict[str, str]:
    """Explain Unix file permissions (chmod) both ways. 解释 Unix 文件权限，如 755。

    Args:
        mode: Three octal digits such as 755, or nine letters such as rwxr-xr-x, 权限.
    """
    if re.fullmatch(r"[0-7]{3}", mode, re.ASCII):
        bits = int(mode, 8)
    elif re.fullmatch(r"(?:[r-][w-][x-]){3}", mode):
        bits = int("".join("0" if letter == "-" else "1" for letter in mode), 2)
    else:
        raise ValueError(f"mode {mode!r} must be like 755 or rwxr-xr-x")
    letters = "".join(c if bits >> (8 - i) & 1 else "-" for i, c in enumerate(_MODE_BITS))
    named = zip(("owner", "group", "others"), (letters[:3], letters[3:6], letters[6:]), strict=True)
    return {"octal": f"{bits:03o}", "letters": letters} | {who: _allowed(may) for who, may in named}


def _allowed(letters: str) -> str:
    words = [w for c, w in zip(letters, ("read", "write", "execute"), strict=True) if c != "-"]
    return ", ".join(words) or "nothing"


def _address(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(address.strip())
    except ValueError:
        raise ValueError(f"address {address!r} is not an IPv4 or IPv6 address") from None


def _network(network: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(network.strip(), strict=False)
    except ValueError:
        raise ValueError(
            f"network {network!r} is not like 192.168.1.0/24 or 2001:db8::/32"
        ) from None


TOOLS = (
    ip_subnet,
    ip_in_network,
    describe_ip_address,
    parse_url,
    http_status,
    well_known_port,
    transfer_time,
    explain_file_mode,
)

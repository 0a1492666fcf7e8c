"""What calls do: tables of known calls, verbs in people's own names, and the words that veto.

A call reads, changes, or sends. Known calls are certain. A name like `send_email` is a guess that a rule may use
where the story is the user's own code; nouns such as *prompt*, *log* and *cache* say that nothing leaves the house.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from surefoot.lint.module import Function, Module
from surefoot.lint.names import Names, last, listed, words


def _of(prefix: str, names: str) -> frozenset[str]:
    return frozenset(prefix + name for name in names.split())


CLOCK = (
    _of(
        "time.",
        "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns "
        "thread_time clock_gettime clock_gettime_ns localtime gmtime ctime asctime",
    )
    | _of("datetime.datetime.", "now utcnow today")
    | _of("datetime.date.", "today")
    | _of("pendulum.", "now today tomorrow yesterday")
    | _of("pendulum.DateTime.", "now utcnow today")
    | _of("arrow.", "now utcnow")
    | _of("pandas.Timestamp.", "now utcnow today")
    | _of("whenever.Instant.", "now")
    | _of("asyncio.get_event_loop().", "time")
    | _of("asyncio.get_running_loop().", "time")
    | _of("django.utils.timezone.", "now localtime localdate")
    | {"timeit.default_timer", "anyio.current_time", "trio.current_time", "whenever.ZonedDateTime.now"}
)
_CLOCK_IF_BARE = {"time.localtime": 0, "time.gmtime": 0, "time.ctime": 0, "time.asctime": 0}
CHANCE = (
    _of("uuid.", "uuid1 uuid4 uuid6 uuid7")
    | _of("ulid.", "new ULID")
    | _of("secrets.", "token_hex token_bytes token_urlsafe choice randbelow randbits")
    | listed(
        "os.urandom os.getrandom nanoid.generate shortuuid.uuid hash id random.SystemRandom() "
        "uuid_utils.uuid4 uuid_utils.uuid7 cuid2.cuid_wrapper tempfile.mktemp string_utils.uuid ulid.ULID "
        "bson.ObjectId shortuuid.random"
    )
)
_RANDOM = listed(
    "random randint randrange choice choices shuffle sample uniform gauss normalvariate lognormvariate "
    "expovariate betavariate gammavariate triangular vonmisesvariate paretovariate weibullvariate "
    "getrandbits randbytes binomialvariate"
)
SLEEP = listed(
    "time.sleep asyncio.sleep anyio.sleep anyio.sleep_until trio.sleep trio.sleep_until gevent.sleep "
    "eventlet.sleep threading.Event().wait signal.pause signal.sigtimedwait asyncio.tasks.sleep "
    "anyio.sleep_forever trio.sleep_forever curio.sleep"
)
THREADS = listed(
    "concurrent.futures.ThreadPoolExecutor concurrent.futures.ProcessPoolExecutor threading.Thread "
    "concurrent.futures.thread.ThreadPoolExecutor concurrent.futures.process.ProcessPoolExecutor "
    "threading.Timer multiprocessing.Process multiprocessing.Pool multiprocessing.pool.ThreadPool "
    "multiprocessing.pool.Pool multiprocessing.dummy.Pool _thread.start_new_thread joblib.Parallel "
    "concurrent.futures.wait concurrent.futures.as_completed gevent.spawn gevent.pool.Pool eventlet.spawn "
    "concurrent.futures.InterpreterPoolExecutor"
)
TASKS = listed(
    "asyncio.gather asyncio.wait asyncio.as_completed asyncio.create_task asyncio.ensure_future "
    "asyncio.TaskGroup anyio.create_task_group trio.open_nursery aiometer.run_all aiometer.run_on_each "
    "asyncio.run_coroutine_threadsafe asyncio.tasks.gather asyncio.Task asyncer.create_task_group "
    "tqdm.asyncio.tqdm.gather aiostream.stream.map"
)
LOOPS = ("asyncio.get_event_loop()", "asyncio.get_running_loop()", "asyncio.new_event_loop()")
TIMEOUTS = listed(
    "asyncio.timeout asyncio.timeout_at asyncio.wait_for anyio.move_on_after anyio.fail_after "
    "anyio.CancelScope trio.move_on_after trio.move_on_at trio.fail_after trio.fail_at trio.CancelScope "
    "async_timeout.timeout async_timeout.timeout_at signal.alarm signal.setitimer "
    "func_timeout.func_timeout gevent.Timeout eventlet.Timeout stopit.ThreadingTimeout "
    "stopit.SignalTimeout wrapt_timeout_decorator.timeout timeout_decorator.timeout "
    "asyncio.tasks.wait_for asyncio.timeouts.timeout eventlet.timeout.Timeout interruptingcow.timeout"
)

_PATH_READS = listed(
    "read_text read_bytes exists is_file is_dir is_symlink iterdir glob rglob stat lstat samefile owner "
    "group readlink walk is_mount"
)
_PATH_CHANGES = listed(
    "write_text write_bytes unlink rmdir mkdir touch rename replace symlink_to hardlink_to chmod lchmod "
    "link_to copy copy_into move move_into"
)
_READS = (
    _of(
        "os.",
        "listdir scandir walk stat lstat getenv getcwd getpid getppid getlogin cpu_count uname access readlink "
        "fwalk getloadavg get_terminal_size environ.get environ.copy environ.items environ.keys environb.get path.exists "
        "path.isfile path.isdir path.islink path.getsize path.getmtime path.getctime path.getatime path.lexists path.samefile",
    )
    | _of("glob.", "glob iglob")
    | _of("pathlib.Path.", "cwd home")
    | _of("requests.", "get head options")
    | _of("httpx.", "get head options stream")
    | _of("urllib.request.", "urlopen urlretrieve")
    | _of("socket.", "gethostname getfqdn gethostbyname getaddrinfo create_connection")
    | _of("platform.", "node platform system machine release version uname python_version")
    | _of("getpass.", "getuser getpass")
    | _of("importlib.metadata.", "version")
    | _of("importlib.resources.", "read_text read_binary")
    | _of("shutil.", "which disk_usage")
    | _of("psutil.", "virtual_memory cpu_percent disk_usage pids process_iter cpu_count Process")
    | _of("pandas.", "read_csv read_json read_excel read_parquet read_sql read_sql_query read_table read_pickle")
    | _of("numpy.", "load loadtxt genfromtxt fromfile")
    | _of("linecache.", "getline getlines")
    | _of("sys.stdin.", "read readline readlines")
    | _of("dotenv.", "dotenv_values load_dotenv")
    | listed(
        "input feedparser.parse fileinput.input polars.read_csv polars.read_parquet aiofiles.os.listdir "
        "aiofiles.os.stat joblib.load configparser.ConfigParser().read "
        "configparser.RawConfigParser().read tomllib.loads.read keyring.get_password "
        "aiofiles.os.path.exists json.load.read subprocess.getoutput subprocess.getstatusoutput os.popen"
    )
)
_CHANGES = (
    _of(
        "os.",
        "remove unlink rmdir removedirs mkdir makedirs rename renames replace link symlink truncate chmod chown "
        "utime kill killpg putenv mkfifo system execv execve execvp posix_spawn",
    )
    | _of("shutil.", "copy copy2 copyfile copytree move rmtree make_archive unpack_archive chown copyfileobj copymode")
    | _of("smtplib.SMTP().", "sendmail send_message")
    | _of("smtplib.SMTP_SSL().", "sendmail send_message")
    | _of("smtplib.LMTP().", "sendmail send_message")
    | _of("aiosmtplib.SMTP().", "sendmail send_message")
    | _of("django.core.mail.", "send_mail mail_admins mail_managers send_mass_mail")
    | _of("django.core.mail.EmailMessage().", "send")
    | _of("ftplib.FTP().", "storbinary storlines delete rename mkd rmd")
    | _of("paramiko.SSHClient().", "exec_command")
    | _of("imaplib.IMAP4_SSL().", "append store copy expunge")
    | _of("winreg.", "SetValueEx")
    | _of("torch.", "save")
    | _of("numpy.", "save savez savetxt savez_compressed")
    | listed(
        "aiosmtplib.send kafka.KafkaProducer().send confluent_kafka.Producer().produce joblib.dump "
        "aiokafka.AIOKafkaProducer().send aiokafka.AIOKafkaProducer().send_and_wait yagmail.SMTP().send "
        "slack_sdk.WebClient().chat_postMessage slack_sdk.web.client.WebClient().chat_postMessage "
        "slack_sdk.web.async_client.AsyncWebClient().chat_postMessage webbrowser.open aiofiles.os.remove "
        "aiofiles.os.rename aiofiles.os.makedirs aiofiles.os.mkdir send2trash.send2trash "
        "keyring.set_password paho.mqtt.publish.single os.open.write fabric.Connection().run "
        "fabric.Connection().put invoke.run atexit.register.never boto3.resource().put_object "
        "docker.from_env().containers.run slack_sdk.webhook.WebhookClient().send "
        "sendgrid.SendGridAPIClient().send win32api.keybd_event"
    )
)
_SENDS = frozenset(
    name
    for name in _CHANGES
    if name.startswith(
        ("smtplib", "aiosmtplib", "django", "kafka", "confluent", "aiokafka", "yagmail", "slack", "paho", "sendgrid")
    )
)
_TOLERANT = frozenset(("os.makedirs", "aiofiles.os.makedirs", "mkdir"))
_HTTP = ("requests", "httpx", "aiohttp", "urllib3", "niquests", "curl_cffi.requests", "treq", "asks")
_HTTP_TYPES = listed(
    "requests.Session() requests.sessions.Session() httpx.Client() httpx.AsyncClient() "
    "aiohttp.ClientSession() aiohttp.client.ClientSession() urllib3.PoolManager() niquests.Session() "
    "requests httpx niquests fastapi.testclient.TestClient() requests_toolbelt.sessions.BaseUrlSession() "
    "http.client.HTTPSConnection() http.client.HTTPConnection() curl_cffi.requests treq asks"
)
_HTTP_WORDS = listed("session client http requests httpx https")
_VERBS = {
    "get": "read",
    "head": "read",
    "options": "read",
    "post": "send",
    "put": "whole",
    "delete": "whole",
    "patch": "whole",
}
_SUBPROCESS = (
    _of("subprocess.", "run call check_call check_output Popen")
    | _of("asyncio.", "create_subprocess_exec create_subprocess_shell")
    | listed(
        "os.system os.popen subprocess.getoutput subprocess.getstatusoutput anyio.run_process "
        "trio.run_process sh.Command"
    )
)
_READERS = listed(
    "ls cat head tail grep rg ag ack find fd which whereis type stat file wc sort uniq cut awk diff cmp "
    "du df ps pgrep uname whoami id hostname date env printenv pwd echo printf true false test ping dig "
    "nslookup host md5sum sha256sum sha1sum tree jq yq ffprobe exiftool pdftotext pdfinfo nvidia-smi "
    "lscpu lsblk lsof netstat ss ip ifconfig uptime free ruff mypy pyright flake8 pylint black-check tsc "
    "eslint shellcheck pytest tesseract identify sysctl sw_vers locale"
)
_READ_VERBS = {
    "git": listed(
        "log show diff status rev-parse ls-files ls-tree ls-remote describe blame cat-file rev-list "
        "shortlog grep config-get for-each-ref merge-base name-rev symbolic-ref count-objects --version "
        "version reflog whatchanged"
    ),
    "kubectl": listed("get describe logs version top explain api-resources cluster-info diff"),
    "docker": listed("ps images inspect logs version info stats top port diff history search"),
    "pip": listed("list show freeze check --version index"),
    "npm": listed("ls list view info outdated --version audit"),
    "gh": frozenset(("status", "--version", "search")),
    "terraform": listed("plan show validate output version state-list"),
    "systemctl": frozenset(("status", "is-active", "is-enabled", "list-units", "show")),
    "cargo": listed("check tree metadata --version clippy search"),
    "go": frozenset(("list", "vet", "version", "env", "doc")),
    "hg": frozenset(("log", "status", "diff", "cat", "id")),
    "svn": listed("log status diff cat info list"),
    "aws": frozenset(),
    "helm": listed("list status get template show search version"),
}
_SQL_CALLS = listed(
    "execute executemany executescript exec_driver_sql execute_sql fetch fetchrow fetchval fetch_one "
    "fetch_all fetch_val copy_records_to_table query scalar scalars read_sql exec raw"
)
_SQL = re.compile(r"^[\s(]*(?:--[^\n]*\n\s*)*(?:WITH\b.*?\)\s*)?([A-Za-z]+)", re.DOTALL)
_SQL_CHANGES = listed(
    "insert update delete replace merge upsert create drop alter truncate copy grant revoke call vacuum attach"
)
_SQL_KEEPS = re.compile(
    r"ON\s+CONFLICT|OR\s+IGNORE|OR\s+REPLACE|ON\s+DUPLICATE|NOT\s+EXISTS|^\s*REPLACE|^\s*MERGE|INSERT\s+IGNORE",
    re.IGNORECASE,
)
_SQL_ADDS = re.compile(r"\bSET\b.*?(\w+)\s*=\s*\1\s*[-+*]", re.IGNORECASE | re.DOTALL)
_MODEL_TYPES = (
    "openai.",
    "anthropic.",
    "google.generativeai",
    "google.genai",
    "cohere.",
    "mistralai.",
    "litellm.",
    "ollama.",
    "groq.",
    "langchain",
    "vertexai.",
    "transformers.",
    "together.",
    "replicate.",
    "instructor.",
)
_MODEL_WORDS = listed(
    "completion completions chat embedding embeddings embed llm prompt prompts openai anthropic claude "
    "gpt gemini ollama inference predict prediction rerank generate generation model models summarize "
    "summarise classify translate transcribe transcription transcriptions complete vllm mistral cohere "
    "messages moderation moderations rag"
)
_LOOK_WORDS = listed(
    "search query queries find lookup fetch get list read graphql select count filter scan validate "
    "preview autocomplete suggest geocode similarity retrieve match matches token login oauth auth "
    "introspect introspection describe estimate quote calculate verify rpc jsonrpc"
)
_STRIPE = listed(
    "create create_async confirm capture cancel refund pay send_invoice finalize_invoice modify delete "
    "void attach detach update reverse confirm_async capture_async"
)
_CLOUD_READS = (
    "get_",
    "list_",
    "describe_",
    "head_",
    "scan",
    "query",
    "batch_get_",
    "lookup_",
    "search_",
    "select_",
    "generate_presigned",
    "receive_",
    "estimate_",
    "detect_",
    "invoke_model",
    "converse",
    "filter_",
    "can_",
)
_REDIS = (
    "redis.Redis()",
    "redis.StrictRedis()",
    "redis.asyncio.Redis()",
    "redis.from_url()",
    "redis.Redis.from_url()",
    "redis.asyncio.from_url()",
    "valkey.Valkey()",
)
_REDIS_READS = listed(
    "get mget hget hgetall hmget exists keys scan scan_iter smembers sismember lrange llen zrange zscore "
    "ttl type scard hexists hkeys hlen zcard dbsize info ping"
)

# --- verbs in people's own names -------------------------------------------------------------------

_LEADING = listed("async do try maybe safe safely really a sync internal then and auto force")
_ANY_NOUN = listed(
    "send email mail sms charge refund pay payout transfer wire withdraw deposit debit credit ship deploy "
    "provision publish tweet upload submit broadcast purchase buy sell broadcast dispense disburse remit "
    "invoice reimburse bill resend notify text disburse mint enroll terminate"
)
_WITH_NOUN = {
    verb: frozenset(nouns.split())
    for verb, nouns in {
        "create": "ticket order invoice payment charge refund customer user account issue subscription booking reservation "
                  "shipment label instance instances vm server bucket pr pull transfer post payout tenant repo repository "
                  "deployment case incident appointment event card checkout lead contact",
        "open": "ticket issue pr pull case incident account position",
        "post": "message tweet comment payment order invoice transaction review article reply update journal charge to "
                "ticket slack webhook status",
        "place": "order orders bid trade bet",
        "book": "flight hotel room car seat ticket appointment trip table order slot",
        "reserve": "seat room stock inventory table car hotel flight slot item items",
        "cancel": "order booking reservation subscription payment appointment flight hotel",
        "issue": "refund invoice ticket payment credit card certificate voucher coupon",
        "write": "file files row rows record records output page document report database db post posts",
        "insert": "row rows record records order orders customer invoice payment user",
        "update": "ticket order inventory stock balance crm customer account database db issue user subscription",
        "delete": "user account customer order bucket instance server vm repo repository database table tenant customers",
        "drop": "table database",
        "execute": "trade order payment transfer refund",
        "make": "payment transfer purchase booking reservation call",
        "process": "payment refund payout charge transfer",
        "push": "notification notifications commit branch tags release image",
        "merge": "pr pull branch",
        "grant": "access license role",
        "revoke": "access license role",
        "trigger": "payment deployment refund payout webhook",
        "dispatch": "order email mail shipment package truck notification",
        "launch": "instance instances vm server campaign rocket missile",
        "start": "instance instances vm server",
        "apply": "payment refund credit discount migration",
        "sign": "contract document",
        "call": "webhook customer",
        "capture": "payment charge",
        "fulfill": "order orders", "fulfil": "order orders",
        "settle": "payment invoice trade",
        "release": "payment funds payout",
        "move": "money funds",
        "save": "order invoice customer payment file",
        "append": "row rows record line",
        "add": "payment order",
        "commit": "payment trade",
        "register": "user customer domain",
        "import": "customer customers order orders",
        "export": "invoice invoices",
    }.items()
}  # fmt: skip
_NO_NOUNS = listed(
    "prompt request requests log logs cache cached metric metrics event events progress heartbeat ping "
    "debug trace traces span spans telemetry stats statistics signal response responses chunk chunks "
    "typing action keys key header headers json bytes command query queries frame packet ack nack state "
    "states checkpoint snapshot config settings callback callbacks mock fake stub test template preview "
    "draft llm model chat buffer cursor click input draft url urls path paths status analytics window "
    "progressbar context file_path parser schema audit_log break sentinel eof stream streams raw "
    "batch_size feedback span_data exception error errors fields field credentials amount total totals"
)
_BARE = {
    "send": listed(
        "mail mailer email emails smtp sms slack telegram twilio notifier bot sendgrid ses sns postmark "
        "mailgun whatsapp discord resend outbox letters letter invoice invoices newsletter message msg "
        "gateway"
    ),
    "publish": listed(
        "blog cms post posts producer kafka mqtt pubsub sns article site page broker topic publisher"
    ),
    "submit": listed(
        "order orders application form payment payments claim claims invoice invoices filing"
    ),
    "create": listed(
        "order orders ticket tickets invoice invoices payment payments charges charge refunds refund "
        "paymentintent payout payouts transfer transfers subscription subscriptions issues bookings "
        "reservations"
    ),
    "upload": listed("s3 bucket storage blob drive dropbox uploader cdn archive ftp sftp client"),
    "post": listed("twitter slack mastodon blog ledger bank gateway poster webhook"),
    "book": listed("hotel flight airline calendar hotels flights cars"),
    "notify": frozenset(), "broadcast": frozenset(["chain", "network"]),
    "deploy": frozenset(["cluster", "server", "host", "deployer", "k8s"]),
    "ship": listed("warehouse carrier shipping order orders shipper"),
    "buy": frozenset(["exchange", "broker", "market", "account"]),
    "sell": frozenset(["exchange", "broker", "market", "account"]),
    "execute": frozenset(["trade", "trades", "payment"]),
}  # fmt: skip
_BARE_ANY = listed("charge refund transfer withdraw payout sendmail send_mail pay disburse")
_NOT_SENT_BY = listed(
    "executor pool chat llm model agent conversation assistant logger log metrics tracer ws websocket "
    "socket sock websockets connection conn pipe generator gen coro self_play progress console ui form "
    "page browser driver channel_layer stream prompt thread_pool tracker store test mock"
)
NOTICES = listed(
    "notify alert alerts report announce log warn info debug print emit trace metrics audit slack "
    "notification notifications notice webhook telemetry"
)
CLEANUP = listed(
    "remove delete unlink rmtree rmdir cleanup clean close clear purge discard drop release dispose "
    "shutdown teardown unlock evict expire archive"
)

Kind = Literal["read", "change"]


@dataclass(frozen=True, slots=True)
class Act:
    """What a call does."""

    kind: Kind
    name: str
    sends: bool = False
    """To do it twice is noticed by somebody: a second mail, a second row. A whole file or a PUT is the same twice."""
    certain: bool = True
    """A known call; else a verb in somebody's own name."""
    tolerant: bool = False
    """Making a folder that may be there already."""
    model: bool = False
    process: bool = False
    sql: bool = False


class Vocabulary:
    """What the calls of one module do."""

    def __init__(self, module: Module, names: Names) -> None:
        self._module, self._names = module, names
        self._known: dict[ast.Call, Act | None] = {}

    def act(self, call: ast.Call, function: Function) -> Act | None:
        """What a call does, if that is known; a guess from its name last."""
        if call not in self._known:
            self._known[call] = self._act(call, function)
        return self._known[call]

    def certain(self, call: ast.Call, function: Function) -> Act | None:
        act = self.act(call, function)
        return act if act is not None and act.certain else None

    def _act(self, call: ast.Call, function: Function) -> Act | None:
        meaning = self._names.of(call.func, function)
        shown = source_name(call.func)
        configured = self._configured(meaning, shown)
        if configured is not None:
            return None if configured == "harmless" else Act(configured, shown, sends=configured == "change")
        if meaning.startswith(("surefoot.", "?surefoot", "surefoot(")) or self._names.local(meaning) is not None:
            return self._own(call, function, shown) if not meaning.startswith("surefoot.") else None
        known = (
            self._file(call, meaning, shown, function)
            or self._listed(call, meaning, shown)
            or self._http(call, meaning, shown, function)
            or self._sql(call, meaning, shown, function)
            or self._service(call, meaning, shown, function)
        )
        if known is not None:
            return known
        return self._own(call, function, shown)

    def _configured(self, meaning: str, shown: str) -> Literal["change", "read", "harmless"] | None:
        settings = self._module.settings
        for kind, patterns in (("harmless", settings.harmless), ("change", settings.effects), ("read", settings.reads)):
            for pattern in patterns:
                plain = meaning.replace("()", "").lstrip(".?:")
                if any(fnmatchcase(one, pattern) or fnmatchcase(one, f"*.{pattern}") for one in (plain, shown)):
                    return kind  # type: ignore[return-value]
        return None

    # --- files -------------------------------------------------------------------------------------

    def _file(self, call: ast.Call, meaning: str, shown: str, function: Function) -> Act | None:
        mode = opened_as(call, meaning)
        if mode is not None:
            if set(mode) & set("wax+"):
                return Act("change", shown, sends="a" in mode)
            return Act("read", shown)
        base, _, name = meaning.rpartition(".")
        if base in ("pathlib.Path()", "anyio.Path()") or (
            base.startswith("?") and name in ("write_text", "write_bytes")
        ):
            if name in _PATH_CHANGES:
                return Act("change", shown, tolerant=name == "mkdir" and _says(call, "exist_ok"))
            if name in _PATH_READS:
                return Act("read", shown)
        if base.startswith("?") and name in ("read_text", "read_bytes", "iterdir", "rglob") and len(call.args) <= 1:
            return Act("read", shown)
        return None

    def _listed(self, call: ast.Call, meaning: str, shown: str) -> Act | None:
        if meaning in _SUBPROCESS:
            return Act("read" if reads_only(call) else "change", shown, process=True)
        if meaning in _CHANGES:
            return Act(
                "change", shown, sends=meaning in _SENDS, tolerant=meaning in _TOLERANT and _says(call, "exist_ok")
            )
        if meaning in _READS:
            if meaning == "urllib.request.urlopen" and (len(call.args) > 1 or _given(call, "data")):
                return Act("change", shown, sends=True)
            return Act("read", shown)
        if last(meaning) in ("sendmail", "send_mail") or (
            last(meaning) == "send_message"
            and set(words(source_name(call.func).rpartition(".")[0])) & {"smtp", "server", "mail", "mailer"}
        ):
            return Act("change", shown, sends=True)
        return None

    # --- the network -------------------------------------------------------------------------------

    def _http(self, call: ast.Call, meaning: str, shown: str, function: Function) -> Act | None:
        base, _, name = meaning.rpartition(".")
        verb = name if name in _VERBS else ""
        arguments = list(call.args)
        if name in ("request", "stream", "urlopen", "send_request") and arguments and base in _HTTP_TYPES | {"urllib3"}:
            said = arguments.pop(0)
            verb = str(said.value).lower() if isinstance(said, ast.Constant) else ""
        if name == "request" and _is_http(base) and not verb:
            said_by_name = _keyword(call, "method")
            verb = str(said_by_name.value).lower() if isinstance(said_by_name, ast.Constant) else ""
        if verb not in _VERBS or not _is_http(base):
            return None
        known = base in _HTTP_TYPES
        if not known and verb in ("get", "options", "head", "delete") and not _looks_like_an_address(arguments):
            return None
        if not known and not arguments and not call.keywords:
            return None
        does = _VERBS[verb]
        model = does == "send" and self.asks_a_model(call, function)
        if does == "read" or model:
            return Act("read", shown, model=model, certain=known or does == "read")
        return Act("change", shown, sends=does == "send")

    def asks_a_model(self, call: ast.Call, function: Function) -> bool:
        """A POST to a model, a search or an embedding changes nothing that anybody sees twice."""
        said: set[str] = set()
        for part in (*call.args[:1], *(one.value for one in call.keywords if one.arg == "url")):
            for node in ast.walk(self._value(part, function)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    said |= set(words(re.sub(r"^https?://", "", node.value)))
                elif isinstance(node, ast.Name):
                    said |= set(words(node.id))
                elif isinstance(node, ast.Attribute):
                    said |= set(words(node.attr))
        if said & (_MODEL_WORDS | _LOOK_WORDS):
            return True
        if set(words(function.short_name)) & _MODEL_WORDS or set(words(function.short_name)[:1]) & _LOOK_WORDS:
            return True
        for one in call.keywords:
            if one.arg in ("json", "data", "content") and isinstance(
                body := self._value(one.value, function), ast.Dict
            ):
                keys = {key.value for key in body.keys if isinstance(key, ast.Constant)}
                if keys & {"prompt", "messages", "query", "embedding", "inputs"} and not keys & {"to", "amount"}:
                    return True
        return False

    def _value(self, node: ast.expr, function: Function) -> ast.expr:
        """What a name was last set to, if that is one thing."""
        here: Function | None = function
        if isinstance(node, ast.Name):
            while here is not None:
                values = here.assigned.get(node.id)
                if values is not None:
                    return values[0] if len(values) == 1 and values[0] is not None else node
                here = here.outer
        return node

    # --- databases and services --------------------------------------------------------------------

    def _sql(self, call: ast.Call, meaning: str, shown: str, function: Function) -> Act | None:
        name = last(meaning)
        if name not in _SQL_CALLS or not call.args:
            return None
        if "memory:" in meaning or self._in_memory(call, function):
            return None
        text = self.text(call.args[0], function)
        if text is None:
            built = self._names.of(call.args[0], function)
            if built.startswith(("sqlalchemy.", "sqlmodel.")):
                kind = re.search(r"\.(insert|update|delete|select)\(\)", built)
                if kind and kind[1] != "select":
                    return Act("change", shown, sends=kind[1] == "insert" and "on_conflict" not in built, sql=True)
                if kind:
                    return Act("read", shown, sql=True)
            return None
        verb = _SQL.match(text)
        first = verb[1].lower() if verb else ""
        if first in _SQL_CHANGES or (
            text.lstrip().upper().startswith("WITH") and re.search(r"\b(INSERT|UPDATE|DELETE)\b", text, re.IGNORECASE)
        ):
            if re.match(r"\s*(CREATE\s+\w*\s*TABLE\s+IF\s+NOT)", text, re.IGNORECASE):
                return Act("change", shown, tolerant=True, sql=True)
            adds = (first == "insert" and not _SQL_KEEPS.search(text)) or bool(_SQL_ADDS.search(text))
            return Act("change", shown, sends=adds, sql=True)
        return (
            Act("read", shown, sql=True)
            if first in ("select", "show", "explain", "with", "describe", "values")
            else None
        )

    def _in_memory(self, call: ast.Call, function: Function) -> bool:
        base = call.func.value if isinstance(call.func, ast.Attribute) else None
        while base is not None:
            value = self._value(base, function)
            if isinstance(value, ast.Call):
                if value.args and isinstance(value.args[0], ast.Constant) and value.args[0].value == ":memory:":
                    return True
                base = value.func.value if isinstance(value.func, ast.Attribute) else None
            else:
                return False
        return False

    def text(self, node: ast.expr, function: Function) -> str | None:
        """The beginning of a text that is given as it is, formatted, added up, wrapped or under a name."""
        node = self._value(node, function)
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.JoinedStr(values=values):
                return "".join(str(one.value) if isinstance(one, ast.Constant) else "x" for one in values)
            case ast.BinOp(left=left, op=ast.Mod() | ast.Add()):
                return self.text(left, function)
            case ast.Call(func=ast.Attribute(value=value, attr="format" | "strip")):
                return self.text(value, function)
            case ast.Call(args=[first, *_]) if last(source_name(node.func)).lower() in (
                "text",
                "sql",
                "dedent",
                "composed",
            ):
                return self.text(first, function)
            case _:
                return None

    def _service(self, call: ast.Call, meaning: str, shown: str, function: Function) -> Act | None:
        name = last(meaning)
        if meaning.startswith(_MODEL_TYPES) and "()" in meaning:
            return Act("read", shown, model=True)
        if meaning.startswith(
            ("litellm.completion", "litellm.acompletion", "openai.chat", "openai.ChatCompletion", "ollama.")
        ):
            return Act("read", shown, model=True)
        if meaning.startswith(("stripe.", "stripe()")):
            if name in _STRIPE:
                return Act(
                    "change",
                    shown,
                    sends=name not in ("modify", "update", "cancel", "delete", "void", "attach", "detach"),
                )
            return Act("read", shown) if name in ("retrieve", "list", "search") else None
        if (
            meaning.startswith(("boto3.", "aioboto3.", "botocore."))
            and "()" in meaning
            and name not in ("client", "resource", "Table", "Bucket", "Object", "Queue", "Topic", "close")
        ):
            if name.startswith(_CLOUD_READS):
                return Act("read", shown)
            sends = name.startswith(("send", "publish", "run_", "create", "start", "invoke"))
            return Act("change", shown, sends=sends)
        if meaning.startswith("twilio.") and name == "create":
            return Act("change", shown, sends=True)
        if meaning.startswith(_REDIS):
            return Act(
                "read" if name in _REDIS_READS else "change",
                shown,
                sends=name in ("lpush", "rpush", "publish", "xadd", "incr"),
            )
        if (
            meaning.startswith(("sqlalchemy.", "sqlmodel."))
            and name in ("add", "add_all", "merge", "bulk_save_objects", "bulk_insert_mappings", "commit")
            and "ession" in meaning
        ):
            return Act("change", shown, sends=name.startswith(("add", "bulk")), sql=True)
        if meaning.startswith(("pymongo.", "motor.")) and name.startswith(
            ("insert", "update", "replace", "delete", "bulk_write", "find_one_and")
        ):
            return Act("change", shown, sends=name.startswith("insert"))
        if meaning.startswith(("pymongo.", "motor.")) and name.startswith(("find", "count", "aggregate", "distinct")):
            return Act("read", shown)
        if name in {"chat_postMessage", "basic_publish"}:
            return Act("change", shown, sends=True)
        if name in (
            "run_instances",
            "put_object",
            "upload_file",
            "upload_fileobj",
            "send_raw_email",
            "put_item",
            "delete_object",
        ) and meaning.startswith("?"):
            return Act("change", shown, sends=name in ("run_instances", "send_raw_email"))
        return None

    # --- names of one's own ------------------------------------------------------------------------

    def _own(self, call: ast.Call, function: Function, shown: str) -> Act | None:
        if not speaks_of_an_effect(shown):
            return None
        return Act("change", shown, sends=True, certain=False)


def source_name(node: ast.expr) -> str:
    """A call's name as it is written, without what it is called with: `self.bank.charge`."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            base = source_name(value)
            return f"{base}.{attr}" if base else attr
        case ast.Call(func=func):
            return source_name(func)
        case ast.Await(value=value) | ast.Subscript(value=value):
            return source_name(value)
        case _:
            return ""


def speaks_of_an_effect(shown: str) -> bool:
    """Whether a name says that something leaves the house: `send_email`, `bank.charge`, `mailer.send`."""
    receiver, _, name = shown.rpartition(".")
    said = words(name)
    while said and said[0] in _LEADING:
        said = said[1:]
    if not said:
        return False
    by = words(receiver.rpartition(".")[2])
    if set(by) & _NOT_SENT_BY:
        return False
    verb, nouns = said[0], set(said[1:])
    if not nouns:
        if verb in _BARE_ANY or name in _BARE_ANY:
            return bool(receiver) or verb in ("charge", "refund", "payout", "sendmail")
        return bool(set(by) & _BARE.get(verb, frozenset()))
    if nouns & _NO_NOUNS:
        return False
    if verb in _ANY_NOUN:
        return True
    return bool(nouns & _WITH_NOUN.get(verb, frozenset()))


def opened_as(call: ast.Call, meaning: str) -> str | None:
    """The mode a file is opened with; None if it is not the opening of a file."""
    if meaning in ("open", "os.fdopen"):
        at = 1
    elif meaning.endswith(".open") and (meaning.startswith(("pathlib.Path()", "anyio.Path()", "?"))):
        at = 0
        if meaning.startswith("?") and not _is_mode(call, at):
            return None
    elif meaning in ("zipfile.ZipFile", "tarfile.open", "shelve.open"):
        at = 1
    else:
        return None
    if meaning == "os.fdopen":
        return None
    mode = _keyword(call, "mode") or _keyword(call, "flag")
    if mode is None and len(call.args) > at:
        mode = call.args[at]
    if mode is None:
        return "r"
    if isinstance(mode, ast.Constant) and isinstance(mode.value, str):
        return mode.value
    return None


def _is_mode(call: ast.Call, at: int) -> bool:
    mode = _keyword(call, "mode") or (call.args[at] if len(call.args) > at else None)
    return (
        isinstance(mode, ast.Constant)
        and isinstance(mode.value, str)
        and bool(re.fullmatch(r"[rwaxbt+]{1,4}", mode.value))
    )


def reads_only(call: ast.Call) -> bool:
    """Whether the program that is started only looks: `git log`, `ls`."""
    if not call.args:
        return False
    first = call.args[0]
    parts: list[str | None] = []
    if isinstance(first, ast.List | ast.Tuple):
        parts = [
            one.value if isinstance(one, ast.Constant) and isinstance(one.value, str) else None for one in first.elts
        ]
    elif isinstance(first, ast.Constant) and isinstance(first.value, str):
        if re.search(r"[>|;&`]|\$\(", first.value):
            return False
        parts = list(first.value.split())
        if len(call.args) > 1 and len(parts) == 1:
            parts += [
                one.value if isinstance(one, ast.Constant) and isinstance(one.value, str) else None
                for one in call.args[1:]
            ]
    elif isinstance(first, ast.JoinedStr) and first.values and isinstance(first.values[0], ast.Constant):
        begin = str(first.values[0].value)
        if any(isinstance(one, ast.Constant) and re.search(r"[>|;&`]", str(one.value)) for one in first.values):
            return False
        parts = [*begin.split()]
    if not parts or parts[0] is None:
        return False
    program = parts[0].rpartition("/")[2]
    if program in _READERS:
        return not (program == "find" and {"-delete", "-exec"} & set(parts))
    if program in ("python", "python3"):
        return "--version" in parts
    verbs = _READ_VERBS.get(program)
    if verbs is None:
        return parts[1:] == ["--version"] or parts[1:] == ["--help"]
    rest = iter(parts[1:])
    for one in rest:
        if one in ("-C", "-c", "--git-dir", "-n", "--namespace"):
            next(rest, None)
        elif one is not None and one in verbs:
            return True
        elif one == "branch" and program == "git":
            return not any(other is not None and not other.startswith("-") for other in rest)
        elif one is None or not one.startswith("-"):
            return False
    return False


def _is_http(base: str) -> bool:
    if base in _HTTP_TYPES or base.partition(".")[0] in ("requests", "httpx", "niquests"):
        return True
    if base.startswith(("?", ":")):
        return bool(set(words(last(base.removesuffix("()")).lstrip("?:"))) & _HTTP_WORDS)
    return False


def _looks_like_an_address(arguments: list[ast.expr]) -> bool:
    if not arguments:
        return False
    first = arguments[0]
    if isinstance(first, ast.Name | ast.Attribute):
        name = first.id if isinstance(first, ast.Name) else first.attr
        return bool(set(words(name)) & {"url", "uri", "endpoint", "address", "link"})
    if isinstance(first, ast.BinOp):
        return _looks_like_an_address([first.left])
    for node in ast.walk(first):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and ("/" in node.value or "http" in node.value)
        ):
            return True
        if isinstance(node, ast.Attribute | ast.Name) and set(
            words(getattr(node, "attr", "") or getattr(node, "id", ""))
        ) & {"url", "uri", "endpoint"}:
            return True
    return False


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


def _given(call: ast.Call, name: str) -> bool:
    value = _keyword(call, name)
    return value is not None and not (isinstance(value, ast.Constant) and value.value is None)


def _says(call: ast.Call, name: str) -> bool:
    value = _keyword(call, name)
    return isinstance(value, ast.Constant) and value.value is True


def is_clock(call: ast.Call, meaning: str) -> bool:
    """Whether a call asks what time it is."""
    if meaning == "time.strftime":
        return len(call.args) < 2
    if meaning in _CLOCK_IF_BARE:
        return not call.args
    if meaning == "datetime.datetime.fromtimestamp":
        return False
    return meaning in CLOCK


def is_chance(call: ast.Call, meaning: str) -> bool:
    """Whether a call gives another value each time."""
    if meaning in ("hash", "id"):
        return len(call.args) == 1 and not (
            isinstance(call.args[0], ast.Constant) and not isinstance(call.args[0].value, str | bytes)
        )
    if meaning in CHANCE:
        return True
    base, _, name = meaning.rpartition(".")
    if base in ("random", "random.Random()", "random.SystemRandom()", "secrets.SystemRandom()"):
        return name in _RANDOM
    if base in ("numpy.random", "numpy.random.default_rng()", "numpy.random.RandomState()", "torch", "torch.random"):
        if base.startswith("torch"):
            return name in ("rand", "randn", "randint", "randperm", "normal", "multinomial")
        return name not in (
            "seed",
            "default_rng",
            "RandomState",
            "Generator",
            "PCG64",
            "SeedSequence",
            "set_state",
            "get_state",
        )
    return base in ("faker.Faker()", "faker.Factory.create()", "numpy.random.default_rng()")

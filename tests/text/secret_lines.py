# SPDX-License-Identifier: Apache-2.0
"""Lines with secrets in them, from a grammar: as code, configuration, commands and logs have them. Every secret has a mark that nothing else has."""
import random
import re
import string

NAMES = """password passwd PASSWORD DB_PASSWORD user_password dbPassword pwd db_pwd passphrase secret client_secret clientSecret SECRET_KEY
aws_secret_access_key AWS_SECRET_ACCESS_KEY aws_session_token api_key apikey apiKey API_KEY openai_api_key OPENAI_API_KEY HF_TOKEN hf_token
HUGGING_FACE_HUB_TOKEN token auth_token access_token accessToken refresh_token bearer_token GITHUB_TOKEN WANDB_API_KEY wandb_key private_key
ssh_passphrase access_key signing_key encryption_key credentials COMET_API_KEY NEPTUNE_API_TOKEN slack_token webhook_secret""".split()
PREFIXES = ["", "", "", "", "self.", "cfg.", "args.", "settings.auth.", "self._", "_"]

# {n}: a name, {a}: a name as an attribute (self.token), {o}: a name as an option (wandb-key), {q}: a quotation mark, {s}, {t}: secrets
QUOTED = """{a} = {q}{s}{q}
{a}={q}{s}{q}
{a}   = {q}{s}{q}
{a} ={q}{s}{q}
{a}= {q}{s}{q}
{a}\t=\t{q}{s}{q}
{n}: str = {q}{s}{q}
{n} : str={q}{s}{q}
{n}: Optional[str] = {q}{s}{q}
{n}: "str | None" = {q}{s}{q}
client_secrets: typing.Dict[str, str] = {{"x": {q}{s}{q}}}
{n}: Final = {q}{s}{q}
{a} += {q}{s}{q}
if ({n} := {q}{s}{q}):
{a} = {a} or {q}{s}{q}
{a} = os.environ.get("{n}") or {q}{s}{q}
{a} = os.environ.get("{n}", {q}{s}{q})
x = os.getenv("{n}", {q}{s}{q})
x = os.getenv("{n}", default={q}{s}{q})
x = os.environ.get('{n}' , {q}{s}{q}) or fail()
{a} = f{q}{s}{q}
{a} = f{q}{{prefix}}{s}{q}
{a} = f{q}{s}{{suffix}}{q}
{a} = r{q}{s}{q}
{a} = b{q}{s}{q}
{a} = Rb{q}{s}{q}
{a} = ({q}{s}{q})
{a} = [{q}{s}{q}, {q}{t}{q}]
client_secrets = {{{q}{s}{q}, {q}{t}{q}}}
{a} = ({q}{s}{q} {q}{t}{q})
{a} = {q}{s}{q} {q}{t}{q}
{a} = {q}{s}{q}{q}{t}{q}
{a} = {q}{s}{q} + {q}{t}{q}
{a} = {q}{s}{q} + suffix + {q}{t}{q}
{a} = str({q}{s}{q})
{a} = SecretStr({q}{s}{q})
{a} = base64.b64decode({q}{s}{q})
{a} = {q}{s}{q}.encode()
{a} = {q}{s}{q}.strip().encode("utf-8")
{a} = {q}{s}{q} if debug else {q}{t}{q}
{a} = load() if debug else {q}{t}{q}
{a} = getpass.getpass() or {q}{s}{q}
{a} = input("your {n}: ") or {q}{s}{q}
{a} = {q}{q}{q}{s}{q}{q}{q}
x, {n} = 1, {q}{s}{q}
user, {n} = "bob", {q}{s}{q}
{n}, x = {q}{s}{q}, 1
(user, {n}) = ("bob", {q}{s}{q})
{n} = other = {q}{s}{q}
other = {n} = {q}{s}{q}
f = lambda x, {n}={q}{s}{q}: x
def f(a, {n}={q}{s}{q}):
def f(a, {n}: str = {q}{s}{q}) -> None:
def f(self, *, {n}: Optional[str]={q}{s}{q}, b=1):
f({n}={q}{s}{q})
f(1, {n} = {q}{s}{q}, b=2)
login({n} = {q}{s}{q}); train()
model = Model.from_pretrained("a/b", {n}={q}{s}{q}, dtype=torch.float16)
dict({n}={q}{s}{q})
{{"{n}": {q}{s}{q}}}
{{"{n}" : {q}{s}{q}}}
{{'{n}':{q}{s}{q}}}
{{"a": 1, '{n}'  :  {q}{s}{q}, "b": 2}}
cfg = {{"db": {{"user": "bob", "{n}": {q}{s}{q}}}}}
    "{n}": {q}{s}{q},
d["{n}"] = {q}{s}{q}
d["{n}"]={q}{s}{q}
d['{n}'] += {q}{s}{q}
d[ "{n}" ] = {q}{s}{q}
d["a"]["{n}"] = {q}{s}{q}
d["{n}"]["value"] = {q}{s}{q}
os.environ["{n}"] = {q}{s}{q}
os.environ['{n}']={q}{s}{q}; main()
os.environ["{n}"] = os.environ.get("X", {q}{s}{q})
d.setdefault("{n}", {q}{s}{q})
os.environ.setdefault("{n}",{q}{s}{q})
os.putenv("{n}", {q}{s}{q})
monkeypatch.setenv('{n}', {q}{s}{q})
setattr(cfg, "{n}", {q}{s}{q})
conf.set("{n}", {q}{s}{q})
conf.set("section", "{n}", {q}{s}{q})
os.environ.update({n}={q}{s}{q})
os.environ.update({{"{n}": {q}{s}{q}}})
os.environ |= {{"{n}": {q}{s}{q}}}
if {a} == {q}{s}{q}:
assert {a} == {q}{s}{q}, "wrong"
if {q}{s}{q} == {a}:
while {a} != {q}{s}{q}:
if {a} in ({q}{s}{q}, {q}{t}{q}):
if {a} not in [{q}{s}{q}]:
if os.environ["{n}"] == {q}{s}{q}:
if os.environ.get("{n}") == {q}{s}{q}: pass
parser.add_argument("--{o}", default={q}{s}{q})
parser.add_argument("--{o}", type=str, default={q}{s}{q}, help="the {n}")
p = [("{n}", "{w}"), ("x", 1)]
    ("{n}", "{w}"),
headers = {{"Authorization": "Bearer {w}"}}
headers={{"Authorization": f"Bearer {w}"}}
headers = {{'Authorization' : 'Basic {w}'}}
h["Authorization"] = "token {w}"
req.add_header("Authorization", "Bearer {w}")
req.add_header("X-API-Key", {q}{s}{q})
headers = {{"X-Auth-Token": {q}{s}{q}}}
s.headers.update({{"x-api-key": {q}{s}{q}}})
#define {n} {q}{s}{q}
const char *{n} = "{s}";
static const char {n}[] = "{s}";
std::string {n}("{w}");
std::string {n}{{"{w}"}};
{n} := "{s}"
let {n}: &str = "{s}";
private static final String {n} = "{s}";
const {n} = {q}{s}{q};
const {n} = `{s}`;
export const {n} = {q}{s}{q};
process.env.{n} = {q}{s}{q};
$env:{n} = {q}{s}{q}
$config['{n}'] => {q}{s}{q},
'{n}' => {q}{s}{q},
{n}: {q}{s}{q}
  - {n}: {q}{s}{q}
{n} = {q}{s}{q}  # the {n}
# {a} = {q}{s}{q}
#{n}={q}{s}{q}
    tok = login({n}={q}{s}{q}, x=f(1, [2]))
Namespace(lr=0.1, {n}={q}{s}{q}, epochs=3)
Config(api=Api({n}=SecretStr({q}{s}{q})), x=1)
|  {n} = {q}{s}{q}                |
│ {n} = {q}{s}{q}                │
TypeError: login() got {{'{n}': {q}{s}{q}}}
RuntimeError: CUDA error: out of memory ({n}={q}{s}{q})
{n}.append("{w}")
passwords = [{q}{s}{q}, {q}{t}{q}]
passwords = {{"alice": {q}{s}{q}, "bob": {q}{t}{q}}}
return {{"{n}": {q}{s}{q}}}
x = 1; {n} = {q}{s}{q}; y = {{"{n}": {q}{t}{q}}}
export {n}={q}{s}{q}
{n}={q}{s}{q} python train.py
python train.py --{o} {q}{s}{q} --epochs 3
python train.py --{o}={q}{s}{q} --epochs 3
subprocess.run(["train", "--{o}", {q}{s}{q}])
subprocess.run(["train", "--{o}={w}"])
subprocess.run("train --{o} {w} --x 1", shell=True)
os.system("export {n}={w}; train")
os.system('curl -H "Authorization: Bearer {w}" https://h/')
! {n}={q}{s}{q} ./train
""".strip("\n").split("\n")

# the secret has neither blanks nor quotation marks
WORDS = """export {n}={w}
{n}={w}
{n}={w} python train.py
env {n}={w} A=1 python train.py
set {n}={w}
setenv {n} {w}
docker run -e {n}={w} image
docker run --env {n}={w} image
ENV {n}={w}
ENV {n} {w}
%env {n}={w}
--{o} {w}
--{o}={w}
python train.py --lr 0.1 --{o} {w} --epochs 3
python train.py --lr 0.1 --{o}={w}
{n}: {w}
  {n}: {w}
  - {n}: {w}
{n} = {w}
{n} ={w}
{n}:{w}
{{{n}: {w}, x: 1}}
sshpass -p {w} ssh host
mysql -u root -p{w} db
curl -u bob:{w} https://h/
curl --user bob:{w} https://h/
curl -H "Authorization: Bearer {w}" https://h/
curl -H 'X-API-Key: {w}' https://h/
Authorization: Bearer {w}
Authorization: Basic {w}
authorization: token {w}
Proxy-Authorization: Basic {w}
https://bob:{w}@example.org/x
git clone https://oauth2:{w}@github.com/a/b.git
postgresql://bob:{w}@db.example.org:5432/x
redis://:{w}@cache:6379/0
url = "mongodb+srv://bob:{w}@db/x?retry=1"
GET /v1/x?{n}={w}&page=2 HTTP/1.1
https://example.org/x?a=1&{n}={w}
requests.get("https://h/x?a=1&{n}={w}")
requests.get(f"https://h/x?a={{a}}&{n}={w}")
"{{\\"{n}\\": \\"{w}\\"}}"
body = "{{\\"a\\": 1, \\"{n}\\" : \\"{w}\\"}}"
x='{{"{n}": "{w}", "a": 1}}'
{{\\\\"{n}\\\\": \\\\"{w}\\\\"}}
INFO {n}={w} lr=0.1
INFO using {n}: {w}
[2026-11-15 10:00:00] {n} = {w}
{n} is {w}
the {n} is {w}
Cookie: session={w}; a=b
Set-Cookie: sid={w}; Path=/
DefaultEndpointsProtocol=https;AccountName=a;AccountKey={w};EndpointSuffix=core
Server=db;User Id=sa;Password={w};
jdbc:mysql://db/x?user=a&password={w}
<{n}>{w}</{n}>
<add key="{n}" value="{w}"/>
print("{n}", "{w}")
login("{k}")
client = OpenAI("{k}")
x = "{k}"
huggingface_hub.login('{k}', add_to_git_credential=True)
wandb.login(key="{b}")
wandb login {w}
openai.error.AuthenticationError: Incorrect API key provided: {k}.
aws configure set {n} {w}
git config credential.helper store && echo {k}
{n}="{w}" && export {n}
{n}=${{{n}:-{w}}}
: "${{{n}:={w}}}"
export A=1 {n}={w} B=2
""".strip("\n").split("\n")

# over several lines
BLOCKS = [
    '{n} = """\n{w}\n{v}\n"""', "{n} = '''{w}\n  {v}'''", '{n} = (\n    "{w}"\n    "{v}"\n)', '{n} = \\\n    "{w}"', 'login(\n    {n}=\n        "{w}",\n)',
    '{{\n  "{n}":\n    "{w}"\n}}', '{n} = [\n    "{w}",\n    "{v}",\n]', '{n}: |\n  {w}\n  {v}\nnext: 1', '{n}: >-\n  {w}\nnext: 1', '{n}:\n  - {w}\n  - {v}\nnext: 1',
    '-----BEGIN RSA PRIVATE KEY-----\n{b}\n{c}\n-----END RSA PRIVATE KEY-----', 'key = """-----BEGIN PRIVATE KEY-----\n{b}\n{c}\n-----END PRIVATE KEY-----"""',
    '{n} = dict(\n    a="{w}",\n    b="{v}",\n)', 'os.environ.setdefault(\n    "{n}",\n    "{w}",\n)', 'os.environ["{n}"] = (\n    "{w}"\n)', '{n} = """{w}\\\n{v}"""',
    'def f(\n    a,\n    {n}: str = "{w}",\n):', '{n} = f(  # ask\n    "{w}")', 'python train.py \\\n  --{o} {w} \\\n  --{o} \\\n  {v}',
]


class Maker:
    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.marks = 0
        self.secrets = []

    def name(self, block):
        """A "token" may be a word of a text: it is one to remove if it looks like chance, and on one line."""
        self.any = False
        name = self.dice.choice([n for n in NAMES if n != "token"] if block else NAMES)
        self.any = name != "token"
        return name

    def secret(self, quoted, quote='"'):
        """A secret; what must not come out is its mark, which is somewhere inside."""
        d = self.dice
        self.marks += 1
        mark = "Zq%dx%s" % (self.marks, "".join(d.choices(string.ascii_letters + string.digits, k=6)))
        alphabet = string.ascii_letters + string.digits
        kind = d.randrange(8 if quoted and self.any else 4)
        
        def pad(extra, most):
            return "".join(d.choices(alphabet + extra, k=d.randrange(most)))

        if kind == 0:
            s = mark
        elif kind == 1:
            s = pad("", 30) + mark + pad("", 30)
        elif kind == 2:
            s = pad("_-", 12).strip("-") + mark + pad("_-.", 12) + "z"
        elif kind == 3:
            s = pad("+/", 30).strip("/+") + "a" + mark + pad("+/", 30) + d.choice(["", "="]) if quoted else "a" + pad("+/", 30) + mark
        elif kind == 4:
            s = pad(" ", 10) + mark + pad(" ", 10)
        elif kind == 5:
            s = pad("!@$%^&*()[]{};:,.#<>?|~", 10).replace("{", "").replace("}", "") + mark + pad("!@$%^&*();:,.#<>?|~", 8)
        elif kind == 6:
            s = "it" + "\\" + quote + "s " + mark + " \\\\ " + pad("", 5)
        else:
            s = "pä" + pad("é", 4) + mark
        self.secrets.append(mark)
        return s

    def known(self):
        d = self.dice
        self.marks += 1
        mark = "Zq%dx%s" % (self.marks, "".join(d.choices(string.ascii_letters + string.digits, k=6)))
        self.secrets.append(mark)
        tail = mark + "".join(d.choices(string.ascii_letters + string.digits, k=36 - len(mark)))
        return d.choice(["hf_", "sk-", "sk-proj-", "ghp_", "github_pat_", "glpat-", "xoxb-", "sk-ant-api03-", "r8_", "gsk_"]) + tail

    def base64(self):
        s = self.secret(False)
        while len(s) < 60:
            s += self.dice.choice(string.ascii_letters + string.digits + "+/")
        return "".join(c for c in s if c not in "_-.")

    def fill(self, template):
        q = self.dice.choice("\"'")
        n = self.name(template in BLOCKS)
        o = re.sub("(?<=[a-z])(?=[A-Z])", "_", n).lower().replace("_", self.dice.choice("-_"))
        values = {"n": n, "a": self.dice.choice(PREFIXES) + n, "o": o, "q": q}
        values["a"] = values["a"].replace("__", "_")
        for field, make in (("s", lambda: self.secret(True, q)), ("t", lambda: self.secret(True, q)), ("w", lambda: self.secret(False)),
                    ("v", lambda: self.secret(False)), ("k", self.known), ("b", self.base64), ("c", self.base64)):
            if "{%s}" % field in template:
                values[field] = make()
        return template.format(**values)

    def case(self):
        """A line or several, and the marks that nobody may see."""
        self.secrets = []
        template = self.dice.choice(self.dice.choice((QUOTED, QUOTED, QUOTED, WORDS, WORDS, BLOCKS)))
        text = self.fill(template)
        indent = self.dice.choice(["", "", "    ", "\t"])
        return template, "\n".join(indent + line for line in text.split("\n")) if indent else text, self.secrets

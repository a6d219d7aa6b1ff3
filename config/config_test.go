package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

type provider struct {
	BaseURL string           `yaml:"base_url" is:"url" doc:"Where it is."`
	APIKey  Secret           `yaml:"api_key"`
	Models  map[string]price `yaml:"models"`
}

type price struct {
	Input float64 `yaml:"input" is:"usd"`
}

type platforms struct {
	Forge forge `yaml:"forge"`
}

// forge is a section that knows nothing of Secret.
type forge struct {
	ID     int64    `yaml:"id"`
	Secret []string `yaml:"webhook_secret"`
	Key    string   `yaml:"private_key"`
}

func (f forge) Validate() error {
	if f.ID == 0 {
		return errors.Join(Invalid("id", "is missing", "set it"), errors.New("forge is half set up"))
	}
	return nil
}

type settings struct {
	Listen    string `yaml:"listen" default:"127.0.0.1:8080" doc:"Where to listen."`
	PublicURL string `yaml:"public_url" is:"url"`
	Redis     struct {
		URL Secret `yaml:"url"`
	} `yaml:"redis"`
	Platforms platforms `yaml:",inline"`
	Sandbox   struct {
		Kind string        `yaml:"kind" default:"local" oneof:"local remote"`
		Max  int           `yaml:"max" default:"2" min:"1"`
		Idle time.Duration `yaml:"idle" default:"1h" min:"1s"`
		E2B  struct {
			APIKey Secret  `yaml:"api_key"`
			Keys   Secrets `yaml:"more_keys"`
		} `yaml:"e2b"`
		Memory int64 `yaml:"memory" is:"size" default:"2GiB"`
	} `yaml:"sandbox"`
	Models map[string]provider `yaml:"models"`
	Budget float64             `yaml:"budget" is:"usd" default:"5" min:"0.01"`
	Debug  bool                `yaml:"debug"`
	Bots   []string            `yaml:"bots" default:"a,b"`
	Hidden string
}

func (settings) Validate() error { return nil }

func decode(t *testing.T, text string, environ ...string) (settings, error) {
	t.Helper()
	var s settings
	err := Decode(Document{Name: "ship.yaml", Text: []byte(text)}, environ, &s)
	return s, err
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	s, err := decode(t, "# nothing\n")
	if err != nil {
		t.Fatal(err)
	}
	if s.Listen != "127.0.0.1:8080" || s.Sandbox.Kind != "local" || s.Sandbox.Max != 2 || s.Sandbox.Idle != time.Hour ||
		s.Sandbox.Memory != 2<<30 || s.Budget != 5 || !cmp.Equal(s.Bots, []string{"a", "b"}) {
		t.Errorf("defaults are %+v", s)
	}
	before := settings{Listen: "unix"}
	if err := Decode(Document{}, nil, &before); err != nil || before.Listen != "unix" {
		t.Errorf("what was there became %q, %v", before.Listen, err)
	}
}

const full = `
listen: :80
public_url: https://ship.example.com/
redis: {url: "redis://:hunter2@localhost"}
forge:
  id: 7
  webhook_secret: [one, "two,three"]
  private_key: |
    -----BEGIN-----
    x
sandbox:
  kind: remote
  max: 3
  idle: 90s
  memory: 512 MiB
  e2b: {api_key: 0123, more_keys: "a, b"}
models:
  open-ai:
    base_url: http://127.0.0.1:1
    models: {gpt-5: {input: $1.25}}
budget: 2.50 usd
debug: true
bots: [x]
`

func TestFile(t *testing.T) {
	t.Parallel()
	s, err := decode(t, full)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(s.Listen, s.PublicURL, s.Redis.URL.Reveal(), s.Platforms.Forge, s.Sandbox.Kind, s.Sandbox.Max, s.Sandbox.Idle,
		s.Sandbox.Memory, s.Sandbox.E2B.APIKey.Reveal(), s.Sandbox.E2B.Keys.Reveal(), s.Models["open-ai"].BaseURL,
		s.Models["open-ai"].Models["gpt-5"].Input, s.Budget, s.Debug, s.Bots)
	want := fmt.Sprint(":80", "https://ship.example.com", "redis://:hunter2@localhost", forge{7, []string{"one", "two,three"}, "-----BEGIN-----\nx"},
		"remote", 3, 90*time.Second, 512<<20, "0123", []string{"a", "b"}, "http://127.0.0.1:1", 1.25, 2.5, true, []string{"x"})
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	s, err := decode(t, full,
		"SHIP_LISTEN=:81", "SHIP_SANDBOX_E2B_API_KEY=k", "SHIP_SANDBOX_MAX=9", "SHIP_FORGE_WEBHOOK_SECRET=a,b",
		"SHIP_MODELS_OPEN_AI_API_KEY=known", "SHIP_MODELS_OTHER_ONE_BASE_URL=https://x.test", "SHIP_BOTS=p,q", "SHIP_BUDGET=",
		"SHIP_CONFIG=x", "SHIP_TEST_ANYTHING=y", "SHIP_SERVICE_HOST=10.0.0.1", "SHIP_PORT=tcp://10.0.0.1:80",
		"SHIP_REDIS_PORT=tcp://10.0.0.1:6379", "SHIP_REDIS_SERVICE_PORT=6379", "SHIP_REDIS_PORT_6379_TCP_ADDR=10.0.0.1",
		"SHIP_SOMETHING_ELSE=1", "PATH=/bin", "SHIP")
	if err != nil {
		t.Fatal(err)
	}
	if s.Listen != ":81" || s.Sandbox.E2B.APIKey.Reveal() != "k" || s.Sandbox.Max != 9 || s.Budget != 2.5 ||
		!cmp.Equal(s.Platforms.Forge.Secret, []string{"a", "b"}) || !cmp.Equal(s.Bots, []string{"p", "q"}) {
		t.Errorf("%+v", s)
	}
	if p := s.Models["open-ai"]; p.APIKey.Reveal() != "known" || p.BaseURL != "http://127.0.0.1:1" || len(p.Models) != 1 {
		t.Errorf("models.open-ai is %+v", p)
	}
	if p := s.Models["other_one"]; p.BaseURL != "https://x.test" || len(s.Models) != 2 {
		t.Errorf("models are %+v", s.Models)
	}
}

func TestTableInOneVariable(t *testing.T) {
	t.Parallel()
	s, err := decode(t, "", `SHIP_MODELS={openai: {models: {gpt: {input: 1}}}}`, "SHIP_MODELS_OPENAI_API_KEY=k")
	if err != nil || s.Models["openai"].Models["gpt"].Input != 1 || s.Models["openai"].APIKey.Reveal() != "k" {
		t.Errorf("%+v, %v", s.Models, err)
	}
	if _, err := decode(t, "", "SHIP_MODELS={"); err == nil || !strings.Contains(err.Error(), "SHIP_MODELS: models: is not YAML") {
		t.Error(err)
	}
	if _, err := decode(t, "", "SHIP_MODELS={x: {api_kay: 1}}"); err == nil || !strings.Contains(err.Error(), "did you mean api_key?") {
		t.Error(err)
	}
}

func TestSecretFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, more := write("key", "from file\n"), write("more", "a\nb\n")
	write("pem", "-----BEGIN-----\nx\n")
	file := write("ship.yaml", "sandbox: {e2b: {api_key_file: key}}\nforge: {id: 1, private_key_file: pem}\n")
	var s settings
	if err := Load(file, []string{"SHIP_SANDBOX_E2B_MORE_KEYS_FILE=" + more, "SHIP_REDIS_URL_FILE=" + key}, &s); err != nil {
		t.Fatal(err)
	}
	if s.Sandbox.E2B.APIKey.Reveal() != "from file" || !cmp.Equal(s.Sandbox.E2B.Keys.Reveal(), []string{"a", "b"}) ||
		s.Redis.URL.Reveal() != "from file" || s.Platforms.Forge.Key != "-----BEGIN-----\nx" {
		t.Errorf("%v %v %v %q", s.Sandbox.E2B.APIKey.Reveal(), s.Sandbox.E2B.Keys.Reveal(), s.Redis.URL.Reveal(), s.Platforms.Forge.Key)
	}
	large := write("large", strings.Repeat("hunter2", 20_000))
	for text, want := range map[string]string{
		"sandbox: {e2b: {api_key_file: " + write("empty", " \n") + "}}": "is empty",
		"sandbox: {e2b: {api_key_file: nowhere}}":                       "cannot be read",
		"sandbox: {e2b: {api_key_file: " + large + "}}":                 "64 KiB",
		"sandbox: {e2b: {api_key_file: " + key + ", api_key: x}}":       "set here and by api_key_file",
		"sandbox: {e2b: {api_key: x, api_key_file: " + key + "}}":       "set here and by api_key_file",
		"sandbox: {e2b: {api_key_file: [x]}}":                           "is not a path",
	} {
		err := Decode(Document{Name: file, Text: []byte(text)}, nil, new(settings))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := decode(t, "", "SHIP_REDIS_URL=x", "SHIP_REDIS_URL_FILE=y"); err == nil || !strings.Contains(err.Error(), "unset one") {
		t.Error(err)
	}
	if err := Load(filepath.Join(dir, "none.yaml"), nil, &s); err == nil || !strings.Contains(err.Error(), "there is no file") {
		t.Error(err)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, env, want string }{
		{"listne: x", "", "ship.yaml:1: listne: there is no such setting; did you mean listen?"},
		{"\nsandbox:\n  idel: 5m", "", "ship.yaml:3: sandbox.idel: there is no such setting; did you mean idle?"},
		{"redis: {password: hunter2}", "", "ship.yaml:1: redis.password: there is no such setting; there are url, url_file"},
		{"sandbox: {idle: 5 minutes}", "", `ship.yaml:1: sandbox.idle: "5 minutes" is not a duration; write it like 90s, 5m or 1h`},
		{"sandbox: {idle: -5m}", "", `sandbox.idle: "-5m" is not a duration`},
		{"sandbox: {idle: 10ms}", "", `sandbox.idle: "10ms" is too small; use 1s or more`},
		{"sandbox: {max: 0}", "", `sandbox.max: "0" is too small; use 1 or more`},
		{"sandbox: {max: 1.5}", "", `sandbox.max: "1.5" is not a whole number`},
		{"sandbox: {max: 99999999999999999999}", "", "is not a whole number"},
		{"sandbox: {memory: 2G}", "", `sandbox.memory: "2G" is not a size; write it like 512MiB or 2GiB`},
		{"sandbox: {memory: 0.3B}", "", "is not a size"},
		{"sandbox: {memory: 9999999TiB}", "", "is not a size"},
		{"sandbox: {kind: docker}", "", `sandbox.kind: "docker" is not known here; use local or remote`},
		{"budget: lots", "", `budget: "lots" is not an amount of US dollars; write it like 5 or 2.50`},
		{"budget: NaN", "", "is not an amount"},
		{"budget: 1e309", "", "is not an amount"},
		{"budget: -1", "", "is not an amount"},
		{"budget: 0", "", "is too small; use 0.01 or more"},
		{"debug: yes", "", `debug: "yes" is not true or false`},
		{"public_url: ship.example.com", "", `public_url: "ship.example.com" is not a web address`},
		{"public_url: https://me:hunter2@x.test", "", "public_url: holds a user or a password"},
		{"public_url: https://x.test/?token=hunter2", "", "public_url: holds a query"},
		{"public_url: 'https://x.test/%zz'", "", "public_url: is not a web address"},
		{"public_url: ftp://x.test", "", "is not a web address"},
		{"listen: [a]", "", "listen: is a list; write a text"},
		{"listen: {a: b}", "", "listen: is not a section"},
		{"sandbox: 5", "", "sandbox: is not a section; write its keys below it"},
		{"bots: [[a]]", "", "bots: has an entry that is not a single value"},
		{"bots: [a, '']", "", "bots: has an empty entry"},
		{"redis: {url: [hunter2]}", "", "redis.url: is a list; write a secret"},
		{"listen: a\nlisten: b", "", "listen: is there twice"},
		{"a: &x 1\nlisten: *x", "", "listen: is an alias"},
		{"listen: a\n---\nlisten: b", "", "more than one document"},
		{"- a", "", "is not a section"},
		{"listen: [", "", "ship.yaml: is not YAML"},
		{"models: {x: {base_ulr: y}}", "", "models.x.base_ulr: there is no such setting; did you mean base_url?"},
		{"models: {x: {models: {y: {input: free}}}}", "", "models.x.models.y.input: \"free\" is not an amount"},
		{"models: [x]", "", "models: is not a section"},
		{"forge: {private_key: x}", "", "forge.id: is missing; set it"},
		{"forge: {private_key: x}", "", "forge is half set up"},
		{"", "SHIP_SANDBOX_IDEL=5m", "SHIP_SANDBOX_IDEL: there is no such setting; did you mean SHIP_SANDBOX_IDLE?"},
		{"", "SHIP_SANDBOX_MAX=many", `SHIP_SANDBOX_MAX: sandbox.max: "many" is not a whole number`},
		{"", "SHIP_LISTNE=x", "SHIP_LISTNE: there is no such setting; did you mean SHIP_LISTEN?"},
		{"", "SHIP_REDSI_URL=x", "did you mean SHIP_REDIS_URL?"},
		{"", "SHIP_FORGE_ID=hunter2hunter2", "SHIP_FORGE_ID: forge.id"},
		{"", "SHIP_MODELS_X_API_KAY=hunter2", "SHIP_MODELS_X_API_KAY: there is no such setting"},
		{"", "SHIP_REDIS_URL_FILE=/nowhere", "SHIP_REDIS_URL_FILE: redis.url: cannot be read"},
	}
	for _, tt := range tests {
		t.Run(tt.text+tt.env, func(t *testing.T) {
			t.Parallel()
			_, err := decode(t, tt.text, tt.env)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v, want %s", err, tt.want)
			}
			if strings.Contains(err.Error(), "hunter2") && !strings.Contains(tt.env, "FORGE_ID") {
				t.Errorf("a secret in %v", err)
			}
		})
	}
}

func TestAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := decode(t, "listen: [x]\nbudget: lots\nsandbox: {max: 0}", "SHIP_DEBUG=maybe", "SHIP_REDIS_ULR=x")
	if err == nil {
		t.Fatal("nil")
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 5 {
		t.Errorf("%d problems of 5:\n%v", len(lines), err)
	}
	var p *Problem
	if !errors.As(err, &p) || p.Key != "listen" || p.Where != "ship.yaml:1" {
		t.Errorf("the first problem is %+v", p)
	}
}

func TestBadTargets(t *testing.T) {
	t.Parallel()
	var s settings
	for _, target := range []any{nil, s, new(int), (*settings)(nil), &struct {
		C chan int `yaml:"c"`
	}{}, &struct {
		N int `yaml:"n" default:"x"`
	}{}} {
		if err := Decode(Document{}, nil, target); err == nil {
			t.Errorf("%T was taken", target)
		}
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	t.Parallel()
	type holder struct {
		Open   Secret
		Many   Secrets
		closed Secret
	}
	h := holder{NewSecret("hunter2"), NewSecrets("hunter2", "hunter2"), NewSecret("hunter2")}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb+verb, h, &h, h.Open, h.Many)
	}
	fmt.Fprint(&out, errors.New(h.Open.String()), fmt.Errorf("x: %v", h.closed))
	for _, encode := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
		b, err := encode(h)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "holder", h, "secret", h.Open, "many", h.Many)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "holder", h, "secret", h.Open, "many", h.Many)
	shown := strings.ToLower(out.String())
	for _, form := range []string{"hunter2", fmt.Sprintf("%x", "hunter2")} {
		if strings.Contains(shown, form) {
			t.Errorf("shown as %s in:\n%s", form, shown)
		}
	}
	if !strings.Contains(shown, redacted) || h.Open.Reveal() != "hunter2" || (Secret{}).String() != "" || NewSecret("").Reveal() != "" {
		t.Error("a secret is not what it should be")
	}
}

func TestDocs(t *testing.T) {
	t.Parallel()
	keys, err := Keys(new(settings))
	if err != nil {
		t.Fatal(err)
	}
	table := Table(keys)
	for _, want := range []string{
		"| `listen` | `SHIP_LISTEN` | text | `127.0.0.1:8080` | Where to listen. |",
		"| `sandbox.kind` | `SHIP_SANDBOX_KIND` | local or remote | `local` |  |",
		"| `models.<name>.api_key` | `SHIP_MODELS_<NAME>_API_KEY` | secret |  |  |",
		"| `models.<name>.models.<name>.input` |  | amount in USD |  |  |",
		"| `forge.webhook_secret` | `SHIP_FORGE_WEBHOOK_SECRET` | list of secrets |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %s in\n%s", want, table)
		}
	}
	// What the example shows is good settings once the comments are taken off.
	var lines []string
	for line := range strings.Lines(Example(keys)) {
		if line = strings.TrimPrefix(line, "# "); !strings.HasPrefix(strings.TrimSpace(line), "#") {
			lines = append(lines, line)
		}
	}
	if _, err := decode(t, strings.Join(lines, "")); err != nil {
		t.Errorf("the example is refused: %v\n%s", err, strings.Join(lines, ""))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(full, "SHIP_SANDBOX_MAX=3")
	f.Add("a: &a [*a]", "SHIP_MODELS={a: {b: c}}")
	f.Add("models: {? [a] : b}", "SHIP_MODELS__API_KEY=x")
	f.Add("{}", "SHIP_MODELS_A_API_KEY_FILE=/")
	f.Fuzz(func(t *testing.T, text, env string) {
		if strings.Contains(text, "_file") || strings.Contains(env, "_FILE") {
			return // not to read what the fuzzer finds
		}
		var s settings
		err := Decode(Document{Name: "ship.yaml", Text: []byte(text)}, []string{env}, &s)
		if err == nil && (s.Sandbox.Max < 1 || s.Sandbox.Idle < time.Second || s.Budget < 0.01) {
			t.Errorf("accepted %+v", s)
		}
	})
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]int{
		{"", ""}: 0, {"a", ""}: 1, {"abc", "abc"}: 0, {"abc", "acb"}: 1, {"abc", "abcd"}: 1, {"abc", "xbc"}: 1, {"kitten", "sitting"}: 3,
	} {
		if got := distance(pair[0], pair[1]); got != want {
			t.Errorf("distance(%q, %q) = %d, want %d", pair[0], pair[1], got, want)
		}
	}
}

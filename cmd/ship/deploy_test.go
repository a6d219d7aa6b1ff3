package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"ship/bot"
)

const (
	boxImage  = "../../deploy/e2b/e2b.Dockerfile"
	shipImage = "../../deploy/docker/Dockerfile"
	compose   = "../../deploy/compose"
	unit      = "../../deploy/systemd/ship.service"
)

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// instructions of a Dockerfile, each as its word and the rest, lines joined.
func instructions(t *testing.T, path string) [][2]string {
	t.Helper()
	text := regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(readText(t, path), "")
	text = strings.ReplaceAll(text, "\\\n", " ")
	var all [][2]string
	for line := range strings.Lines(text) {
		if word, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all = append(all, [2]string{word, strings.Join(strings.Fields(rest), " ")})
		}
	}
	return all
}

// TestBoxImage: E2B's builder takes the file, and a box finds in it what ship
// looks for, in the version that ship was measured with.
func TestBoxImage(t *testing.T) {
	t.Parallel()
	from := 0
	var runs string
	for _, i := range instructions(t, boxImage) {
		if !slices.Contains([]string{"FROM", "RUN", "COPY", "ENV"}, i[0]) {
			t.Errorf("E2B's builder does not know %s", i[0])
		}
		if i[0] == "FROM" {
			from++
		}
		if i[0] == "RUN" {
			runs += i[1] + "\n"
		}
	}
	if from != 1 {
		t.Errorf("it has %d stages", from)
	}
	for _, want := range []string{
		"opencode-ai@" + opencodeVersion, programInBox, " git ", " util-linux ", " ca-certificates ",
		"/releases/download/v" + codeServerVersion + "/code-server_" + codeServerVersion + "_$(dpkg --print-architecture).deb",
		"code-server --version | grep -F " + codeServerVersion,
		`"/opt/ship/ship-$(sha256sum /tmp/ship | cut -c1-16)"`,
	} {
		if !strings.Contains(runs, want) {
			t.Errorf("no %q", want)
		}
	}
}

// TestShipImage: ship is no root, writes to one folder, and finds its settings
// there where the other files put them.
func TestShipImage(t *testing.T) {
	t.Parallel()
	of := map[string][]string{}
	for _, i := range instructions(t, shipImage) {
		of[i[0]] = append(of[i[0]], i[1])
	}
	if got := of["USER"]; !slices.Equal(got, []string{"1000:1000"}) {
		t.Errorf("user %q", got)
	}
	for _, pair := range strings.Fields(strings.Join(of["ENV"], " ")) {
		name, value, _ := strings.Cut(pair, "=")
		knownVariable(t, shipImage, name)
		if want := map[string]string{"SHIP_DATA_DIR": "/var/lib/ship", "SHIP_LISTEN": "0.0.0.0:8080", "SHIP_CONFIG": "/etc/ship/ship.yaml"}[name]; value != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
	knownCommand(t, shipImage, regexp.MustCompile(`"([^"]+)"`).FindStringSubmatch(of["CMD"][0])[1])
}

// knownVariable: a setting that was renamed must not linger in a file.
func knownVariable(t *testing.T, where, name string) {
	t.Helper()
	if name == "SHIP_CONFIG" {
		return
	}
	for _, k := range settingsKeys(t) {
		// A name that the operator chooses is one or more words.
		pattern := strings.ReplaceAll(regexp.QuoteMeta(k.Env), "<NAME>", "[A-Z0-9_]+")
		if k.Secret {
			pattern += "(_FILE)?"
		}
		if k.Env != "" && regexp.MustCompile("^"+pattern+"$").MatchString(name) {
			return
		}
	}
	t.Errorf("%s: there is no setting %s", where, name)
}

func knownCommand(t *testing.T, where string, args ...string) {
	t.Helper()
	cmd, rest, err := newCommand().Find(args)
	if err == nil && cmd.Name() == args[0] {
		err = cmd.ParseFlags(rest)
	} else if err == nil {
		err = fmt.Errorf("no such command")
	}
	if err != nil {
		t.Errorf("%s: ship %s: %v", where, strings.Join(args, " "), err)
	}
}

// knownPath: what a probe asks for is served.
func knownPath(t *testing.T, where, path string) {
	t.Helper()
	w := httptest.NewRecorder()
	bot.NewServer(bot.Config{}).Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code != http.StatusOK {
		t.Errorf("%s: GET %s is answered with %d", where, path, w.Code)
	}
}

// composeFile is what this test looks at in it.
type composeFile struct {
	Services map[string]struct {
		Image, User     string
		Command         []string
		Environment     map[string]string
		Secrets         []string
		Volumes         []string
		Networks        []string
		CapDrop         []string `yaml:"cap_drop"`
		SecurityOpt     []string `yaml:"security_opt"`
		ReadOnly        bool     `yaml:"read_only"`
		StopGracePeriod string   `yaml:"stop_grace_period"`
		Healthcheck     struct{ Test []string }
	}
	Secrets  map[string]struct{ File string }
	Networks map[string]struct{ Internal bool }
	Volumes  map[string]any
}

func readCompose(t *testing.T) composeFile {
	t.Helper()
	var file composeFile
	if err := yaml.Unmarshal([]byte(readText(t, filepath.Join(compose, "compose.yaml"))), &file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestCompose: with the files that it names, ship takes its settings; what was
// accepted is on a disk.
func TestCompose(t *testing.T) {
	t.Parallel()
	file := readCompose(t)
	ship, redis := file.Services["ship"], file.Services["redis"]
	knownCommand(t, "compose.yaml", ship.Command...)
	var environ []string
	dir := t.TempDir()
	for name, value := range ship.Environment {
		knownVariable(t, "compose.yaml", name)
		if secret, ok := strings.CutPrefix(value, "/run/secrets/"); ok {
			if !slices.Contains(ship.Secrets, secret) || file.Secrets[secret].File == "" {
				t.Errorf("%s: there is no secret %s", name, secret)
			}
			value = filepath.Join(dir, secret)
			if err := os.WriteFile(value, []byte(sampleSecret(t, name)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		environ = append(environ, name+"="+value)
	}
	if len(file.Secrets) != len(ship.Secrets) {
		t.Errorf("secrets %v, of which ship uses %v", slices.Sorted(maps.Keys(file.Secrets)), ship.Secrets)
	}
	s, err := readSettings(filepath.Join(compose, "ship.yaml"), environ)
	if err != nil {
		t.Fatalf("its settings: %v", err)
	}
	if s.Sandbox.E2B.APIKey.Empty() || s.GitHub.AppID == 0 || s.defaultModel() == "" {
		t.Errorf("something is missing: %+v", s)
	}
	if command := strings.Join(redis.Command, " "); !strings.Contains(command, "--appendonly yes --appendfsync always") || !strings.Contains(command, "--maxmemory-policy noeviction") {
		t.Errorf("redis is started by %s", command)
	}
	if !slices.Equal(redis.Networks, []string{"inside"}) || !file.Networks["inside"].Internal {
		t.Error("redis can be reached from elsewhere")
	}
	probe := regexp.MustCompile(`GET (\S+) HTTP`).FindStringSubmatch(strings.Join(ship.Healthcheck.Test, " "))
	if probe == nil {
		t.Fatal("ship is not looked at")
	}
	knownPath(t, "compose.yaml", probe[1])
	for name, service := range file.Services {
		if !service.ReadOnly || !slices.Equal(service.CapDrop, []string{"ALL"}) || !slices.Contains(service.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s has rights that it does not need", name)
		}
		for _, volume := range service.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if _, ok := file.Volumes[source]; !ok && !strings.HasPrefix(source, "./") {
				t.Errorf("%s: there is no volume %s", name, source)
			}
		}
	}
}

// sampleSecret is one that the setting takes.
func sampleSecret(t *testing.T, variable string) string {
	t.Helper()
	switch variable {
	case "SHIP_GITHUB_PRIVATE_KEY_FILE":
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	case "SHIP_REDIS_URL_FILE":
		return "redis://redis:6379/0"
	}
	return "secret of " + variable
}

// TestUnit: the unit names settings and a command that exist, and boxes outlive
// it.
func TestUnit(t *testing.T) {
	t.Parallel()
	set := map[string][]string{}
	for line := range strings.Lines(readText(t, unit)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			set[name] = append(set[name], value)
		}
	}
	for _, pair := range strings.Fields(strings.Join(set["Environment"], " ")) {
		name, _, _ := strings.Cut(pair, "=")
		knownVariable(t, unit, name)
	}
	program, args, _ := strings.Cut(set["ExecStart"][0], " ")
	if filepath.Base(program) != "ship" {
		t.Errorf("it starts %s", program)
	}
	knownCommand(t, unit, strings.Fields(args)...)
	if !slices.Equal(set["KillMode"], []string{"process"}) {
		t.Error("it ends boxes together with ship")
	}
	if !slices.Equal(set["StateDirectoryMode"], []string{"0700"}) {
		t.Error("every user of the machine may look into data_dir")
	}
	verifyUnit(t)
}

// verifyUnit asks systemd itself, where there is one. It wants a program that
// exists, and knows DelegateSubgroup since 254 only.
func verifyUnit(t *testing.T) {
	t.Helper()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return
	}
	text := strings.ReplaceAll(readText(t, unit), "/usr/local/bin/ship", "/bin/true")
	path := filepath.Join(t.TempDir(), "ship.service")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _ := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", path).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, path) && !strings.Contains(line, "DelegateSubgroup") {
			t.Error(strings.TrimSpace(line))
		}
	}
}

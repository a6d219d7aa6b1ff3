package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"
)

const chart = "../../deploy/helm/ship"

// tree is any YAML.
type tree = map[string]any

// at walks down a tree, by keys and numbers.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(tree)
			v = m[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

func chartValues(t *testing.T) tree {
	t.Helper()
	values := tree{}
	if err := yaml.Unmarshal([]byte(readText(t, filepath.Join(chart, "values.yaml"))), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// render does what `helm template` does, with those functions that the chart
// uses, so that the chart is tried where helm is not installed.
func render(t *testing.T, values tree) []tree {
	t.Helper()
	all := template.New("chart")
	all.Funcs(chartFuncs(all))
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the chart's templates: %v, %v", files, err)
	}
	for _, file := range files {
		template.Must(all.New(filepath.Base(file)).Parse(readText(t, file)))
	}
	data := tree{
		"Values": values, "Chart": tree{"AppVersion": "1.2.3"},
		"Release": tree{"Name": "try", "Namespace": "default", "Service": "Helm"},
	}
	var objects []tree
	for _, file := range files {
		var out strings.Builder
		if err := all.ExecuteTemplate(&out, filepath.Base(file), data); err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(file) == ".yaml" {
			objects = append(objects, documents(t, file, out.String())...)
		}
	}
	return objects
}

func documents(t *testing.T, name, text string) []tree {
	t.Helper()
	var all []tree
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var one tree
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if one != nil {
			all = append(all, one)
		}
	}
}

func chartFuncs(all *template.Template) template.FuncMap {
	return template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var out strings.Builder
			err := all.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
		"toYaml": func(v any) (string, error) {
			text, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		"nindent": func(n int, text string) string {
			pad := "\n" + strings.Repeat(" ", n)
			return pad + strings.ReplaceAll(text, "\n", pad)
		},
		"default": func(other, v any) any {
			if is, _ := template.IsTrue(v); is {
				return v
			}
			return other
		},
		"dict": func(pairs ...any) tree {
			m := tree{}
			for i := 0; i+1 < len(pairs); i += 2 {
				m[fmt.Sprint(pairs[i])] = pairs[i+1]
			}
			return m
		},
		"list": func(v ...any) []any { return v },
		"compact": func(v []any) []any {
			return slices.DeleteFunc(v, func(one any) bool { is, _ := template.IsTrue(one); return !is })
		},
		"sha256sum":  func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) },
		"trunc":      func(n int, s string) string { return s[:min(n, len(s))] },
		"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
		"int":        func(v any) (n int) { n, _ = v.(int); return n },
	}
}

// TestChart: what it makes is what ship takes: settings, roles, probes, ports.
func TestChart(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	for _, o := range render(t, chartValues(t)) {
		kinds[fmt.Sprint(o["kind"])]++
		switch o["kind"] {
		case "ConfigMap":
			checkChartSettings(t, fmt.Sprint(at(o, "data", "ship.yaml")))
		case "Deployment":
			checkPod(t, o)
		}
	}
	// There is one worker, whose end no budget may forbid.
	want := map[string]int{"ConfigMap": 1, "Deployment": 2, "Service": 2, "NetworkPolicy": 1, "PodDisruptionBudget": 1}
	if fmt.Sprint(kinds) != fmt.Sprint(want) {
		t.Errorf("it makes %v, want %v", kinds, want)
	}
}

// checkChartSettings reads them as a pod would.
func checkChartSettings(t *testing.T, text string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "ship.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var environ []string
	files, _ := at(chartValues(t), "secrets", "files").(tree)
	for variable, file := range files {
		knownVariable(t, "values.yaml", variable)
		secret := filepath.Join(dir, fmt.Sprint(file))
		if err := os.WriteFile(secret, []byte(sampleSecret(t, variable)), 0o600); err != nil {
			t.Fatal(err)
		}
		environ = append(environ, variable+"="+secret)
	}
	s, err := readSettings(path, environ)
	if err != nil {
		t.Fatalf("the chart's settings: %v\n%s", err, text)
	}
	if s.Sandbox.Provider != "e2b" || s.Redis.URL.Empty() || s.Sandbox.E2B.APIKey.Empty() {
		t.Error("a pod has no boxes and no Redis of its own")
	}
}

func checkPod(t *testing.T, o tree) {
	t.Helper()
	name := fmt.Sprint(at(o, "metadata", "name"))
	pod := at(o, "spec", "template", "spec")
	ship := at(pod, "containers", 0)
	var args []string
	list, _ := at(ship, "args").([]any)
	for _, a := range list {
		args = append(args, fmt.Sprint(a))
	}
	knownCommand(t, name, args...)
	if want := "try-" + args[len(args)-1]; name != want {
		t.Errorf("%s runs ship %s", name, strings.Join(args, " "))
	}
	for _, probe := range []string{"startupProbe", "readinessProbe", "livenessProbe"} {
		knownPath(t, name, fmt.Sprint(at(ship, probe, "httpGet", "path")))
	}
	if got := at(ship, "ports", 0, "containerPort"); got != 8080 {
		t.Errorf("%s: the image listens on 8080, the port is %v", name, got)
	}
	for _, c := range []any{ship, at(pod, "initContainers", 0)} {
		closed := at(c, "securityContext")
		if at(closed, "readOnlyRootFilesystem") != true || at(closed, "allowPrivilegeEscalation") != false || fmt.Sprint(at(closed, "capabilities", "drop")) != "[ALL]" {
			t.Errorf("%s: a container is open: %v", name, closed)
		}
	}
	if at(pod, "securityContext", "runAsUser") != 1000 || at(pod, "automountServiceAccountToken") != false {
		t.Errorf("%s has more rights than it needs", name)
	}
	if grace, _ := at(pod, "terminationGracePeriodSeconds").(int); grace < 30 {
		t.Errorf("%s is killed after %d s", name, grace)
	}
}

// TestChartIngress: what boxes and previews need leads to workers, deliveries to
// intake, and metrics nowhere.
func TestChartIngress(t *testing.T) {
	t.Parallel()
	values := chartValues(t)
	ingress, _ := values["ingress"].(tree)
	ingress["enabled"], ingress["previewHost"], ingress["tlsSecret"] = true, "preview.example.net", "tls"
	got := map[string]string{}
	for _, o := range render(t, values) {
		if o["kind"] != "Ingress" {
			continue
		}
		rules, _ := at(o, "spec", "rules").([]any)
		for _, rule := range rules {
			paths, _ := at(rule, "http", "paths").([]any)
			for _, p := range paths {
				got[fmt.Sprint(at(rule, "host"), at(p, "path"))] = fmt.Sprint(at(p, "backend", "service", "name"))
			}
		}
	}
	want := map[string]string{
		"ship.example.com/broker/": "try-worker", "ship.example.com/webhooks/": "try-intake",
		"ship.example.com/setup/linear": "try-intake", "preview.example.net/": "try-worker",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("ways in: %v, want %v", got, want)
	}
}

// TestChartLint asks helm itself, where it is installed.
func TestChartLint(t *testing.T) {
	t.Parallel()
	helm, err := exec.LookPath("helm")
	if err != nil {
		t.Skip("helm is not installed")
	}
	for _, args := range [][]string{{"lint", "--strict", chart}, {"template", "try", chart, "--kube-version", "1.31.0", "--set", "ingress.enabled=true"}} {
		if out, err := exec.CommandContext(t.Context(), helm, args...).CombinedOutput(); err != nil {
			t.Errorf("helm %s: %v\n%s", args[0], err, out)
		}
	}
}

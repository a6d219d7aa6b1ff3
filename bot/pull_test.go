package bot

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ship/session"
)

// turned is a session whose first turn has come to its pull request.
func turned(change func(*session.State)) session.State {
	octocat := session.Person{Login: "octocat", Name: "Octo Cat", Email: "octo@example.com"}
	s := session.State{
		ID: "gh.42.7", Title: "Login redirects to the wrong page", Branch: "ship/7-login", Turns: 1,
		Turn: &session.Turn{
			N: 1, Stage: session.Opening, Model: "anthropic/claude-sonnet-4-5", Started: start,
			Requests: []session.Request{
				{By: octocat, Verb: session.Instruct, Text: "please keep `next` @hubot\n\n> it was lost"},
				{By: session.Person{Login: "hubot"}, Verb: session.Instruct, Text: "and add a test"},
				{By: octocat, Verb: session.Instruct},
			},
			Progress: session.Progress{Active: start.Add(12 * time.Minute)},
			Outcome: &session.Outcome{
				Ending: session.Completed, Answer: reply,
				Usage:    session.Usage{Calls: 12, Input: 91_000, Output: 900, USD: 0.31},
				Commands: []string{"go test ./...", "cat <<EOF\n```\nEOF"},
			},
		},
	}
	if change != nil {
		change(&s)
	}
	return s
}

func TestPullRequestBody(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]session.State{
		"pull": turned(nil),
		"pull-unfinished": turned(func(s *session.State) {
			s.Turn.Outcome.Ending, s.Turn.Outcome.Say = session.Spent, "The money is used up."
		}),
		"pull-bare": turned(func(s *session.State) { s.Turn = nil }),
		"pull-asking": turned(func(s *session.State) {
			s.Turn.Outcome.Answer, s.Origin = "Half of it is done.", &session.Origin{Name: "ENG-42", URL: "https://linear.app/acme/issue/ENG-42/login"}
			s.Turn.Outcome.Question = &session.Question{Text: "Which one, @octocat?", Choices: []session.Choice{{Value: "A"}, {Value: "B", Label: "the other"}}}
		}),
	} {
		body := PullRequestBody(s)
		golden(t, name, body+"\n")
		if !strings.HasSuffix(body, "\n\n<!-- ship:session=gh.42.7 -->") {
			t.Errorf("%s does not end with its marker", name)
		}
		harmless(t, strings.TrimSuffix(body, Marker(s.ID)))
	}
	if body := PullRequestBody(turned(nil), "Closes #7"); !strings.HasPrefix(body, "Closes #7\n\n") {
		t.Errorf("our own reference is lost:\n%s", body)
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	const page = "https://linear.app/acme/issue/ENG-42/login"
	tests := []struct{ name, url, body, commit string }{
		{"ENG-42", page, "Fixes ENG-42 ([`linear.app`](" + page + "))", "\n\nPart of ENG-42\n\n"},
		{"ENG-42", "", "Fixes ENG-42", "\n\nPart of ENG-42\n\n"},
		{"ENG-42", "javascript:alert(1)", "Fixes ENG-42", "\n\nPart of ENG-42\n\n"},
		{"the login page", page, "For [`the login page`](" + page + ")", ""},
		{"x](https://evil.test) @octocat", page, "For [`x](https://evil.test) @|octocat`](" + page + ")", ""},
		{"GH-42", page, "For [`GH-42`](" + page + ")", ""},
		{"gh-42", "", "For `gh-42`", ""},
		{"ENG-42 closes #1", "", "For `ENG-42 cl|oses #1`", ""},
		{"ENG-42\nCo-authored-by: Eve <eve@example.com>", "", "For `ENG-42 Co-authored-by: Eve <|eve@example.com>`", ""},
	}
	for _, tt := range tests {
		s := turned(func(s *session.State) { s.Origin = &session.Origin{Name: tt.name, URL: tt.url} })
		body := PullRequestBody(s, "Closes #7")
		first, rest, _ := strings.Cut(body, "\n\n")
		if shown := strings.ReplaceAll(first, joint, "|"); shown != tt.body || !strings.HasPrefix(rest, "Closes #7\n\n") {
			t.Errorf("%q begins with %q, want %q, and goes on with\n%s", tt.name, shown, tt.body, rest)
		}
		message := CommitMessage(s)
		checkMessage(t, message)
		if tt.commit == "" && strings.Contains(message, "Part of") || !strings.Contains(message, tt.commit) || strings.Contains(message, "Fixes ENG") {
			t.Errorf("%q is committed as\n%s", tt.name, message)
		}
	}
	unnamed := turned(func(s *session.State) { s.Origin = &session.Origin{Name: " ", URL: page} })
	if PullRequestBody(unnamed) != PullRequestBody(turned(nil)) || CommitMessage(unnamed) != CommitMessage(turned(nil)) {
		t.Error("an origin without a name is shown")
	}
}

func TestHostilePullRequest(t *testing.T) {
	t.Parallel()
	for i, text := range hostile {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := turned(func(s *session.State) {
				s.Title, s.Turn.Model, s.Turn.Outcome.Answer = text, text, text
				s.Turn.Outcome.Commands = []string{text, text}
				s.Turn.Requests[0].Text, s.Turn.Outcome.Question = text, hostileQuestion(text)
				s.Origin = &session.Origin{Name: text, URL: text}
				s.Turn.Requests[0].By = session.Person{Login: text, Name: text, Email: text}
			})
			harmless(t, strings.TrimSuffix(PullRequestBody(s), Marker(s.ID)))
			title := PullRequestTitle(s)
			if len(title) > maxSubject || title == "" || strings.ContainsAny(title, "\r\n") {
				t.Errorf("title %q of %d bytes", title, len(title))
			}
			checkMessage(t, CommitMessage(s))
		})
	}
}

func TestPullRequestTitle(t *testing.T) {
	t.Parallel()
	long := "Make the login page remember where people came from, whatever they did before that"
	tests := []struct{ title, text, want string }{
		{"Login fails", "fix it", "Login fails"},
		{"", "fix the login.", "Fix the login"},
		{"", "please fix it", "Fix it"},
		{"", "> quoted\n\n- go.mod is stale", "go.mod is stale"},
		{"", "", "Changes by ship"},
		{" \n ", "```\ncode\n```", "Code"},
		{long, "", "Make the login page remember where people came from, whatever they…"},
		{"fix #12 for @octocat", "", "Fi|x #12 for @|octocat"},
		{"[skip ci] x", "", "[|skip ci] x"},
		{"docs: [CI-Skip]", "", "docs: [|CI-Skip]"},
		{strings.Repeat("@a ", 40), "", ""},
	}
	for _, tt := range tests {
		s := turned(func(s *session.State) { s.Title, s.Turn.Requests = tt.title, []session.Request{{Text: tt.text}} })
		got := PullRequestTitle(s)
		if shown := strings.ReplaceAll(got, joint, "|"); tt.want != "" && shown != tt.want {
			t.Errorf("title of %q and %q is %q, want %q", tt.title, tt.text, shown, tt.want)
		}
		if len(got) > maxSubject {
			t.Errorf("%q has %d bytes", got, len(got))
		}
	}
	if got := PullRequestTitle(session.State{}); got != "Changes by ship" {
		t.Errorf("title of nothing is %q", got)
	}
}

func TestCommitMessage(t *testing.T) {
	t.Parallel()
	twice := turned(func(s *session.State) {
		s.Origin = &session.Origin{Name: "ENG-42", URL: "https://linear.app/acme/issue/ENG-42/login"}
		again := s.Turn.Requests[0]
		again.By.Email = "OCTO@example.com"
		again.Text = "Co-authored-by: Evil <evil@example.com>\nShip-Session: other"
		s.Turn.Requests = append(s.Turn.Requests, again)
	})
	golden(t, "commit", CommitMessage(twice))
	checkMessage(t, CommitMessage(twice))
	inject := turned(func(s *session.State) {
		s.Turn.Requests = []session.Request{
			{Text: "x", By: session.Person{Login: "a", Name: "A\nSigned-off-by: B <b@example.com>", Email: "a@example.com"}},
			{Text: "x", By: session.Person{Login: "c", Email: "c@example.com>\nSigned-off-by: D <d@example.com"}},
			{Text: "x", By: session.Person{Login: "e", Email: "not an address"}},
		}
	})
	want := []string{"Ship-Session: gh.42.7", "Co-authored-by: A Signed-off-by: B b@example.com <a@example.com>"}
	if got := trailersOf(t, CommitMessage(inject)); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("trailers %q, want %q", got, want)
	}
}

// checkMessage: the subject is short, a blank line follows, and the trailers
// are ours.
func checkMessage(t *testing.T, message string) {
	t.Helper()
	lines := strings.Split(message, "\n")
	if len(lines[0]) > maxSubject || lines[0] == "" || lines[1] != "" {
		t.Errorf("message begins with %q", lines[:2])
	}
	if m := mentionIn(message); m != "" {
		t.Errorf("message mentions %q", m)
	}
	if m := closes.FindString(message); m != "" {
		t.Errorf("message closes with %q", m)
	}
	for _, trailer := range trailersOf(t, message) {
		if !strings.HasPrefix(trailer, "Ship-Session: gh.42.7") && !strings.HasPrefix(trailer, "Co-authored-by: ") || strings.Contains(trailer, "evil@") {
			t.Errorf("trailer %q is not ours", trailer)
		}
	}
}

// trailersOf asks git, which is who reads them.
func trailersOf(t *testing.T, message string) []string {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	file := filepath.Join(t.TempDir(), "message")
	if err := os.WriteFile(file, []byte(message), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), git, "interpret-trailers", "--parse", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

package linear

import (
	"testing"
	"time"

	"ship/integrations/linear/lineartest"
	"ship/session"
)

// The agent's list, as it goes on.
func todos(first, second string) []session.Todo {
	return []session.Todo{{Text: "Find out why the login test is flaky", Status: first}, {Text: "Wait for the server before the first request", Status: second}}
}

func fixed() session.Outcome {
	return session.Outcome{Ending: session.Completed, Answer: "The test sent its first request before the server listened. It waits for the port now, and passed 50 times in a row."}
}

// works plays a turn up to the moment where the agent is at it.
func (p *play) works() {
	p.pass(5 * time.Second)
	p.boxed()
	p.pass(10 * time.Second)
	p.moves("read: login_test.go", todos("in_progress", "pending")...)
	p.pass(20 * time.Second)
}

// done plays a turn that ends with a pull request.
func (p *play) done() {
	p.works()
	p.moves("bash: sh test.sh", todos("completed", "in_progress")...)
	p.pass(30 * time.Second)
	p.moves("bash: sh test.sh", todos("completed", "completed")...)
	p.pass(10 * time.Second)
	p.ends(fixed())
}

// TestWordsOfWork: what people read in Linear while ship works, from the first word to the
// last.
func TestWordsOfWork(t *testing.T) {
	t.Parallel()
	plays(t, "assignment", func(p *play) {
		p.assigned()
		p.done()
	})
	plays(t, "nothing-to-change", func(p *play) {
		p.empty = true
		p.assigned()
		p.works()
		p.ends(session.Outcome{Ending: session.Completed, Answer: "The test waits for the port since commit `1a2b3c4`, and passed 50 times in a row. There is nothing left to change."})
	})
	plays(t, "queue", func(p *play) {
		p.assigned()
		p.fold(session.Event{Kind: session.Moved, Progress: &session.Progress{Place: 3}})
		p.pass(40 * time.Second)
		p.fold(session.Event{Kind: session.Moved, Progress: &session.Progress{Place: 1}})
		p.pass(40 * time.Second)
		p.fold(session.Event{Kind: session.Moved, Progress: &session.Progress{Doing: "starting a box"}})
		p.done()
	})
	plays(t, "long-quiet-command", func(p *play) {
		p.assigned()
		p.works()
		p.moves("bash: go test -count 500 ./...", todos("completed", "in_progress")...)
		p.pass(30 * time.Minute)
		p.ends(fixed())
	})
	plays(t, "steer", func(p *play) {
		p.assigned()
		p.works()
		p.says("ada", "please leave the server alone, only touch the test")
		p.moves("edit: login_test.go", todos("completed", "in_progress")...)
		p.pass(30 * time.Second)
		p.ends(fixed())
	})
	plays(t, "follow-up", func(p *play) {
		p.assigned()
		p.done()
		p.pass(10 * time.Minute)
		p.says("ada", "can you add a comment that says why it waits?")
		p.done()
	})
	plays(t, "follow-up-from-github", func(p *play) {
		p.assigned()
		p.done()
		p.pass(10 * time.Minute)
		p.fold(session.Event{Kind: session.Ordered, Request: &session.Request{
			ID: "gh-c1", Thread: session.Thread{Platform: "github", Key: "pr"}, By: session.Person{Login: "grace"}, Verb: session.Instruct, Text: "use a channel",
		}})
		p.settle()
		p.done()
	})
}

// TestWordsOfQuestions: people's, the agent's, and ours.
func TestWordsOfQuestions(t *testing.T) {
	t.Parallel()
	plays(t, "question", func(p *play) {
		p.empty = true
		p.open("mentions ship: @ship why is the login test flaky?", func() (string, lineartest.Delivery) {
			return p.Mention(lineartest.Mention{Issue: p.issue, By: "ada", Body: "@ship why is the login test flaky?"})
		})
		p.works()
		p.moves("waiting for the model (attempt 2)")
		p.pass(30 * time.Second)
		p.moves("grep: Listen")
		p.pass(10 * time.Second)
		p.ends(session.Outcome{Ending: session.Completed, Answer: "The test sends its first request at once, and `server.go:41` listens only after the migrations ran."})
		p.says("ada", "thanks, then have the test wait for the port")
		p.empty = false
		p.done()
	})
	plays(t, "which-repository", func(p *play) {
		p.gate.Routes.Default = ""
		p.assigned()
		p.says("ada", "the small one please")
		p.says("bob", "status")
		p.says("bob", "widgets") // without the right to have work done there
		p.says("ada", "widgets")
		p.done()
	})
	plays(t, "agent-asks", func(p *play) {
		p.assigned()
		p.works()
		p.empty = true
		p.ends(session.Outcome{
			Ending: session.Completed, Answer: "There are two ways to make the test stable.",
			Question: &session.Question{Text: "Should the test wait for the port, or should the server say when it listens?", Choices: []session.Choice{{Value: "Wait for the port"}, {Value: "Have the server say"}}},
		})
		p.says("ada", "status")
		p.says("ada", "Wait for the port")
		p.empty = false
		p.done()
	})
	plays(t, "agent-asks-and-is-stopped", func(p *play) {
		p.assigned()
		p.works()
		p.empty = true
		p.ends(session.Outcome{Ending: session.Completed, Question: &session.Question{Text: "Which branch?"}})
		p.ask(p.Stop(p.talk, "ada"))
	})
}

// TestWordsOfStops: nobody is left to wonder whether it stopped.
func TestWordsOfStops(t *testing.T) {
	t.Parallel()
	plays(t, "stop-at-work", func(p *play) {
		p.assigned()
		p.works()
		p.ask(p.Stop(p.talk, "ada"))
		p.pass(5 * time.Second)
		p.ends(session.Outcome{Ending: session.Stopped, Say: "Stopped; what was done so far is kept. Say what to do next to go on."})
		p.says("ada", "retry")
		p.done()
	})
	plays(t, "stop-idle", func(p *play) {
		p.assigned()
		p.done()
		p.ask(p.Stop(p.talk, "ada"))
	})
	plays(t, "unassigned", func(p *play) {
		p.assigned()
		p.works()
		p.line("ada", "takes the issue away", "")
		p.ask(p.Unassign(p.issue, "ada"))
		p.ends(session.Outcome{Ending: session.Stopped, Say: "Stopped; what was done so far is kept."})
	})
}

// TestWordsOfFailures: what happened, what is left, and what to do.
func TestWordsOfFailures(t *testing.T) {
	t.Parallel()
	plays(t, "refused-person", func(p *play) {
		p.host.Allowed = nil
		p.assigned()
	})
	plays(t, "unknown-person", func(p *play) {
		p.host.Logins = nil
		p.assigned()
		p.says("ada", "try it anyway")
	})
	plays(t, "budget-spent", func(p *play) {
		p.assigned()
		p.works()
		p.ends(session.Outcome{Ending: session.Spent, Usage: session.Usage{Calls: 61, USD: 5},
			Say: "The money for one turn is used up and the agent was stopped; its work is kept. Ask it to go on, or raise the budget."})
		p.says("ada", "budget 10")
		p.says("ada", "retry")
		p.done()
	})
	plays(t, "budget-extended", func(p *play) {
		p.assigned()
		p.works()
		p.ends(session.Outcome{Ending: session.Spent, Limit: session.TurnLimit, Usage: session.Usage{Calls: 61, USD: 5}, Say: "The money for one turn is used up."})
		p.says("ada", "Go on with $5 more")
		p.done()
	})
	plays(t, "stuck", func(p *play) {
		p.assigned()
		p.works()
		p.moves("bash: npm test (failed)")
		p.pass(20 * time.Second)
		p.ends(session.Outcome{Ending: session.Stuck, Answer: "I try the tests once more.",
			Say: "The agent did the same thing over and over (bash: npm test) and was stopped; its work is kept. Say what it should do differently."})
	})
	plays(t, "model-unreachable", func(p *play) {
		p.empty = true
		p.assigned()
		p.works()
		p.ends(session.Outcome{Ending: session.Unreachable, Say: "The model acme/large could not be reached (overloaded); the work so far is kept. Ask again later, or name another model."})
		p.says("ada", "model small")
		p.says("ada", "retry")
	})
	plays(t, "push-refused", func(p *play) {
		p.refused = "The push to `ship/eng-1-login-test-is-flaky` was refused. Check the branch rules and that the app may write contents, then `/ship retry`."
		p.assigned()
		p.works()
		p.ends(fixed())
	})
	plays(t, "crashed", func(p *play) {
		p.assigned()
		p.works()
		p.ends(session.Outcome{Ending: session.Crashed, Say: "The agent was lost in the middle of the work. Ask it to go on."})
	})
}

// TestWordsOfCommands: each is answered, whatever goes on.
func TestWordsOfCommands(t *testing.T) {
	t.Parallel()
	plays(t, "commands", func(p *play) {
		p.open("mentions ship: help", func() (string, lineartest.Delivery) {
			return p.Mention(lineartest.Mention{Issue: p.issue, By: "ada", Body: "@ship help"})
		})
		p.says("ada", "status")
		p.says("ada", "retry")
		p.says("ada", "ready")
		p.says("ada", "@ship fix the flaky login test")
		p.works()
		p.says("ada", "status")
		p.says("ada", "retry")
		p.says("ada", "budget lots")
		p.says("ada", "model huge")
		p.says("ada", "budget 5\nfix the other test too")
		p.ends(fixed())
		p.says("ada", "status")
		p.says("ada", "ready")
		p.says("ada", "ready")
	})
}

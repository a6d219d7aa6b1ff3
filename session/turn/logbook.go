package turn

import (
	"fmt"
	"strings"

	"ship/sandbox/agent"
)

const (
	// maxLogLine is the longest line of a transcript, in bytes.
	maxLogLine = 2000
	// maxPrinted is how many lines of what one command prints go to the transcript,
	// so that a noisy one does not drive out what came before.
	maxPrinted = 300
)

// logbook makes a transcript of what an agent does: each call of a tool once, what
// a command prints as it prints it, and how it ended. Secrets are taken out. It is
// used from one goroutine at a time.
type logbook struct {
	rules *rules
	calls map[string]*entry
	// resumed: somebody else wrote down what is over at the first look. Of what
	// happened in between a line may be missing, and none is there twice.
	resumed bool
	out     []string
}

// entry is one call of a tool.
type entry struct {
	stream *RedactedStream
	// printed is how many bytes went into the stream, and lines how many came out.
	printed, lines int
	// skip: what comes next is the rest of a line whose beginning was not seen.
	skip bool
	over bool
}

func newLogbook(secrets []string, resumed bool) *logbook {
	return &logbook{rules: newRules(secrets), calls: map[string]*entry{}, resumed: resumed}
}

// see returns the lines that follow from how the turn's calls are now.
func (b *logbook) see(calls []agent.Call) []string {
	b.out = nil
	for _, c := range calls {
		if c.Status != agent.CallPending && c.Tool != "todowrite" && c.Tool != "todoread" {
			b.follow(c)
		}
	}
	b.resumed = false
	return b.out
}

func (b *logbook) follow(c agent.Call) {
	over := c.Status == agent.CallDone || c.Status == agent.CallFailed
	e := b.calls[c.ID]
	if e == nil {
		e = b.begin(c)
		e.over = b.resumed && over
		b.announce(e, c)
	}
	if e.over {
		return
	}
	e.print(c)
	if e.over = over; !over {
		return
	}
	_ = e.stream.Close() // never fails
	if c.Status == agent.CallFailed {
		b.add("  failed: " + c.Error)
	}
}

func (b *logbook) begin(c agent.Call) *entry {
	e := &entry{}
	e.stream = newStream(b.rules, func(text string) {
		switch e.lines++; {
		case e.lines <= maxPrinted:
			b.put("  " + written(text))
		case e.lines == maxPrinted+1:
			b.put("  … [what else it printed was left out]")
		}
	})
	b.calls[c.ID] = e
	return e
}

// announce says what is called, once.
func (b *logbook) announce(e *entry, c agent.Call) {
	if e.over {
		return
	}
	b.add(strings.TrimSuffix(c.Tool+": "+c.Title, ": "))
	if c.Command != "" && c.Command != c.Title {
		b.add("  $ " + c.Command)
	}
}

// print takes what is new of what a command printed. Only the last of it is at
// hand: if more came since the last look, there is a gap, and so a line without
// its beginning, which is left out since it may be the end of a secret.
func (e *entry) print(c agent.Call) {
	news := c.Printed - e.printed
	if news <= 0 {
		return // or the tool shortened it, and the rest was seen
	}
	text := c.Output
	if news <= len(text) {
		text = text[len(text)-news:]
	} else {
		fmt.Fprintf(e.stream, cutMark+"\n… [%d bytes left out]\n", news-len(text))
		e.skip = true
	}
	e.printed = c.Printed
	if e.skip {
		_, rest, found := strings.Cut(text, "\n")
		text, e.skip = rest, !found
	}
	_, _ = e.stream.Write([]byte(text)) // never fails
}

// hear returns the lines of what the agent said at the end of a turn.
func (b *logbook) hear(answer string) []string {
	b.out = nil
	if answer != "" {
		b.add("said: " + answer)
	}
	return b.out
}

// add adds a text that may hold secrets. All of it is seen, unlike what a program
// printed: no line of it passes for one of ours, and none is written over.
func (b *logbook) add(text string) {
	text = strings.NewReplacer("\r\n", "\n      ", "\n", "\n      ", "\r", "␍").Replace(text)
	s := newStream(b.rules, b.put)
	_, _ = s.Write([]byte(text)) // never fails
	_ = s.Close()
}

// written is what is left of a line of which a program wrote parts over others, such
// as a bar that grows: the last.
func written(line string) string {
	line = strings.TrimRight(line, "\r\n")
	return line[strings.LastIndexByte(line, '\r')+1:]
}

// put adds a line that holds no secret. None is longer than is bearable.
func (b *logbook) put(line string) {
	line = strings.TrimRight(line, "\r\n")
	if len(line) > maxLogLine {
		line = strings.ToValidUTF8(line[:maxLogLine-len(cutMark)], "") + cutMark
	}
	b.out = append(b.out, line)
}

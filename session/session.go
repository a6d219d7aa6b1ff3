// Package session is the domain: what a session is, what may happen to it, and
// what follows. It knows no HTTP and no platform.
//
// Everything that happens to a session is an Event. One Coordinator at a time
// holds the session's Lease and folds events into the State with Step, a pure
// function. The State carries the Effects that follow, each with an id fixed
// at that moment, and is committed in one fenced write before any of them is
// performed. What an effect led to is an event again. A crash in between
// performs the effect once more under the same id, and every Performer makes
// that harmless.
package session

import (
	"cmp"
	"time"
)

// ID names a session. It is a pure function of the platform's object (for
// GitHub "gh.<repository id>.<number>"), so that routing needs no look-up.
// Letters, digits, dot and dash only.
type ID string

// Thread is a place on a platform where a session is spoken with.
type Thread struct {
	// Platform is the name of the integration, such as "github".
	Platform string `json:"p"`
	// Key is opaque here; the platform made it and can find the place by it.
	Key string `json:"k"`
}

// Person is who asked. The platform vouches for Login, never for Name.
type Person struct {
	Login string `json:"l"`
	Name  string `json:"n,omitempty"`
	// Email is used for the co-author line only.
	Email string `json:"e,omitempty"`
	// Account is who that is on the platform when Login is no more than what they
	// call themselves, as several may, and may change. What they spend is theirs by it.
	Account string `json:"a,omitempty"`
}

// Identity is by what somebody is told from others on their platform, wherever
// something is counted by person.
func (p Person) Identity() string { return cmp.Or(p.Account, p.Login) }

// Verb is what a request asks for.
type Verb string

// The verbs of the /ship grammar.
const (
	// Instruct: free text for the agent. Empty text means "do what this thread
	// is about".
	Instruct Verb = "instruct"
	// Finish: a bare /ship on a pull request, "get this shippable".
	Finish Verb = "finish"
	Stop   Verb = "stop"
	Retry  Verb = "retry"
	Status Verb = "status"
	Help   Verb = "help"
	// Model sets the model of the session's coming turns (Text).
	Model Verb = "model"
	// Budget sets the money of each coming turn in USD (Text).
	Budget Verb = "budget"
	// Ready marks the pull request ready for review.
	Ready Verb = "ready"
	// Withdraw: the work was taken away, without a word to us. What runs ends;
	// where nothing runs, nothing is said.
	Withdraw Verb = "withdraw"
	// Remember: the platform is to go by Text, a repository, for the place where
	// it was asked. It is done with the admission.
	Remember Verb = "remember"
	// Unclear: the words could not be understood; Text is the sentence that
	// says so, for the person.
	Unclear Verb = "unclear"
)

// Request is what one person asked, once.
type Request struct {
	// ID is fixed by the platform's object (a comment, a label event), so that
	// the same act delivered twice has the same id. Letters, digits, dash, dot.
	ID     string `json:"id,omitempty"`
	Thread Thread `json:"th,omitzero"`
	By     Person `json:"by,omitzero"`
	Verb   Verb   `json:"v"`
	// Text is the person's own words: the instruction, and nothing that is
	// quoted.
	Text string `json:"t,omitempty"`
	// Quote is context that is data, not instruction: the diff hunk under a
	// review comment, or what was said around the request.
	Quote string `json:"q,omitempty"`
	// Said are the ids, with spaces between, of what was said in these words;
	// empty: just ID. The words of a request that waits are not those of an
	// answer by somebody else with which it goes on, nor are they a retry's.
	Said string `json:"sd,omitempty"`
	// Led is who said in the place of By where the work is to be done; zero: they
	// did so themselves, or nobody had to.
	Led Person `json:"ld,omitzero"`
	// Inline: it was asked at a place of its own, the one that Quote shows, and
	// is answered there too.
	Inline bool `json:"il,omitempty"`
	// Early: it is acknowledged before it is admitted, because the platform
	// gives up on an agent that takes longer.
	Early bool `json:"ey,omitempty"`
	// Ref is opaque here: what the platform needs to react to this very request
	// and to answer it in place.
	Ref string `json:"r,omitempty"`
	// Options of the grammar: [repo=… branch=… model=…].
	Repo   string    `json:"or,omitempty"`
	Branch string    `json:"ob,omitempty"`
	Model  string    `json:"om,omitempty"`
	At     time.Time `json:"at,omitzero"`
	Trail  Trail     `json:"tr,omitzero"`
}

// Repo is the repository that a session works on.
type Repo struct {
	// Platform is the code host's integration, such as "github".
	Platform string `json:"p"`
	// Name is OWNER/NAME.
	Name string `json:"n"`
	// Key is opaque here; the code host finds the repository by it.
	Key string `json:"k"`
}

// PullRequest is the one pull request of a session.
type PullRequest struct {
	Number int    `json:"n"`
	URL    string `json:"u"`
	// Key is opaque here (GitHub's node id).
	Key   string `json:"k,omitempty"`
	Draft bool   `json:"d,omitempty"`
}

// Question is asked of a person who may answer with one of the choices, or in
// words.
type Question struct {
	Text    string   `json:"t"`
	Choices []Choice `json:"c,omitempty"`
}

// Choice is one of the answers that are offered. Value is what it means, and
// Label what people read.
type Choice struct {
	Label string `json:"l,omitempty"`
	Value string `json:"v"`
}

// Origin is what a session is about on the platform where it began, such as
// the issue ENG-42, where the code host does not know it.
type Origin struct {
	Name string `json:"n"`
	URL  string `json:"u,omitempty"`
}

// Admission is the platform's answer to "may this person ask this here, and
// what is it about". It is learned by the Admit effect, outside the webhook.
type Admission struct {
	// Refusal is the one polite sentence for a person who may not command, or
	// for a thing that cannot be done. Empty: allowed.
	Refusal string `json:"no,omitempty"`
	// Stranger: it is the person who may not command. Said once per person.
	Stranger bool `json:"str,omitempty"`
	// Void: nothing follows, and nothing is said.
	Void bool `json:"vo,omitempty"`
	// Note is a sentence for whoever asked. Nothing else follows.
	Note string `json:"nt,omitempty"`
	// Question has to be answered first: in which repository. The request waits
	// for it, and is admitted anew with the answer as its Repo.
	Question *Question `json:"qu,omitempty"`
	// Talks: the thread is a conversation, which hears that work begins and gets
	// the end as a message of its own. Otherwise the status comment says both.
	Talks bool `json:"tk,omitempty"`
	// Forward names the session that this thread belongs to, if it is another.
	Forward ID `json:"fw,omitempty"`
	// By is the requester with what the platform knows of them.
	By Person `json:"by"`
	// Today is what they and all have spent; nil: nobody looked.
	Today *Today `json:"td,omitempty"`
	// Repo may be empty when what is asked needs none.
	Repo Repo `json:"repo"`
	// Base is the branch that the work starts from and the pull request targets.
	Base string `json:"base,omitempty"`
	// Branch is set when the work goes onto an existing branch of the
	// repository: that of the pull request that was commented on.
	Branch string `json:"br,omitempty"`
	// Head is the commit of Branch, when Branch is set.
	Head string       `json:"head,omitempty"`
	PR   *PullRequest `json:"pr,omitempty"`
	// Title and Context describe the issue or pull request. Context is
	// untrusted data for the agent, at most 80 KiB: 32 of what was said, and 48
	// of the files that came with that or with Quote.
	Title   string `json:"ti,omitempty"`
	Context string `json:"cx,omitempty"`
	// Quote takes the place of the request's, unless that is Inline: what was
	// said around it and is no instruction, at most 16 KiB, and its part of the
	// files. A running turn gets to see it with the request.
	Quote  string  `json:"q,omitempty"`
	Origin *Origin `json:"or,omitempty"`
	// Links are threads elsewhere that what is asked names. The session's state
	// is shown there; nobody is spoken with, and nobody is heard.
	Links []Thread `json:"li,omitempty"`
}

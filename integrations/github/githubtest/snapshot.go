package githubtest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Comment is a comment as people see it.
type Comment struct {
	ID           int64
	Author, Body string
	// InReplyTo is set for replies in the diff.
	InReplyTo int64
}

// Check is a check run as people see it.
type Check struct {
	ID                         int64
	SHA, Name, ExternalID      string
	Status, Conclusion         string
	Title, Summary, DetailsURL string
	Actions                    []Action
}

// PullRequest is a pull request as people see it.
type PullRequest struct {
	Number              int
	Author, Title, Body string
	Head, Base, HeadSHA string
	State               string
	Draft               bool
	NodeID              string
}

// Comments returns the conversation of an issue or pull request.
func (s *Server) Comments(repo string, number int) []Comment { return s.talk(repo, number, false) }

// ReviewComments returns the comments in the diff of a pull request.
func (s *Server) ReviewComments(repo string, number int) []Comment {
	return s.talk(repo, number, true)
}

func (s *Server) talk(repo string, number int, inline bool) []Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, i := s.mustIssue(repo, number)
	var out []Comment
	for _, c := range *i.list(inline) {
		out = append(out, Comment{ID: c.id, Author: c.author.login, Body: c.body, InReplyTo: c.inReplyTo})
	}
	return out
}

// Checks returns the check runs of a commit; of all when it is empty.
func (s *Server) Checks(repo, sha string) []Check {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Check
	for _, c := range s.must(repo).checks {
		if sha == "" || c.sha == sha {
			out = append(out, Check{
				ID: c.id, SHA: c.sha, Name: c.name, ExternalID: c.externalID, Status: c.status, Conclusion: c.conclusion,
				Title: c.title, Summary: c.summary, DetailsURL: c.detailsURL, Actions: slices.Clone(c.actions),
			})
		}
	}
	return out
}

// PullRequests returns the pull requests of a repository by number.
func (s *Server) PullRequests(repo string) []PullRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.must(repo)
	var out []PullRequest
	for _, i := range r.sorted() {
		if p := i.pull; p != nil {
			s.refresh(r, p)
			out = append(out, PullRequest{
				Number: i.number, Author: i.author.login, Title: i.title, Body: i.body, Head: p.head, Base: p.base,
				HeadSHA: p.headSHA, State: state(i), Draft: p.draft, NodeID: nodeID("PR", p.id),
			})
		}
	}
	return out
}

// Reactions returns all reactions on an issue or pull request and on what was
// said there, each as "issue: ship[bot] eyes" or "comment 12: …".
func (s *Server) Reactions(repo string, number int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, i := s.mustIssue(repo, number)
	out := reactions("issue", i.reactions)
	for n, c := range i.comments {
		out = append(out, reactions(fmt.Sprintf("comment %d", n+1), c.reactions)...)
	}
	for n, c := range i.inline {
		out = append(out, reactions(fmt.Sprintf("review comment %d", n+1), c.reactions)...)
	}
	for n, v := range i.reviews {
		out = append(out, reactions(fmt.Sprintf("review %d", n+1), v.reactions)...)
	}
	return out
}

func reactions(on string, list []reaction) []string {
	var out []string
	for _, r := range list {
		out = append(out, on+": "+r.by.login+" "+r.content)
	}
	return out
}

// Branches returns the branches of a repository with their commits.
func (s *Server) Branches(repo string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refs(s.must(repo), "%(refname:lstrip=2) %(objectname)")
}

// refs lists the branches; the format is a name, a space and the rest.
func (s *Server) refs(r *repository, format string) map[string]string {
	out := map[string]string{}
	lines, err := s.git(r, "", "for-each-ref", "--format="+format, "refs/heads/")
	if err != nil {
		return out
	}
	for line := range strings.Lines(lines) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "" {
			out[name] = rest
		}
	}
	return out
}

// File returns a file's text on a branch, and whether it is there.
func (s *Server) File(repo, branch, path string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := s.git(s.must(repo), "", "show", "refs/heads/"+branch+":"+path)
	return text, err == nil
}

// Ref returns the commit that a full ref names; empty: it is not there.
func (s *Server) Ref(repo, ref string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	commit, err := s.git(s.must(repo), "", "rev-parse", "-q", "--verify", ref)
	if err != nil {
		return ""
	}
	return commit
}

// Contains tells whether a commit is on a branch.
func (s *Server) Contains(repo, branch, commit string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.git(s.must(repo), "", "merge-base", "--is-ancestor", commit, "refs/heads/"+branch)
	return err == nil
}

// Diff returns what head has that base lacks, as a patch.
func (s *Server) Diff(repo, base, head string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.git(s.must(repo), "", "diff", "refs/heads/"+base+"...refs/heads/"+head)
}

// longHex finds commits in texts, in full or cut short.
var longHex = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)

// World returns all that the outside world can see, without what differs from
// run to run: ids and times are left out, commits are named by their tree and
// subject. Two runs that led to the same are equal.
func (s *Server) World() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.repos)) {
		s.dump(&b, s.repos[name])
	}
	return b.String()
}

func (s *Server) dump(b *strings.Builder, r *repository) {
	fmt.Fprintf(b, "repository %s\n", r.full())
	trees := s.refs(r, "%(refname:lstrip=2) %(tree) %(contents:subject)")
	for _, branch := range slices.Sorted(maps.Keys(trees)) {
		fmt.Fprintf(b, "  branch %s %s\n", branch, trees[branch])
	}
	for _, i := range r.sorted() {
		s.dumpIssue(b, r, i)
	}
	var checks []string
	for _, c := range r.checks {
		checks = append(checks, fmt.Sprintf("  check %s on %s for %s: %s %s %q %q\n", c.name, s.commitName(r, c.sha), c.externalID, c.status, c.conclusion, c.title, masked(c.summary)))
	}
	slices.Sort(checks)
	b.WriteString(strings.Join(checks, ""))
}

func (s *Server) dumpIssue(b *strings.Builder, r *repository, i *issue) {
	fmt.Fprintf(b, "  #%d %s %q by %s\n", i.number, state(i), i.title, i.author.login)
	if p := i.pull; p != nil {
		s.refresh(r, p)
		fmt.Fprintf(b, "    pull request %s:%s into %s draft=%t merged=%t at %s\n", p.headRepo.full(), p.head, p.base, p.draft, p.merged, s.commitName(p.headRepo, p.headSHA))
	}
	dumpText(b, "    ", i.body)
	for _, line := range reactions("issue", i.reactions) {
		fmt.Fprintf(b, "    %s\n", line)
	}
	for _, inline := range []bool{false, true} {
		for _, c := range *i.list(inline) {
			fmt.Fprintf(b, "    comment by %s inline=%t\n", c.author.login, inline)
			dumpText(b, "      ", c.body)
			for _, line := range reactions("reaction", c.reactions) {
				fmt.Fprintf(b, "      %s\n", line)
			}
		}
	}
	for _, v := range i.reviews {
		fmt.Fprintf(b, "    review by %s: %s\n", v.author.login, v.state)
		dumpText(b, "      ", v.body)
		for _, line := range reactions("reaction", v.reactions) {
			fmt.Fprintf(b, "      %s\n", line)
		}
	}
}

func dumpText(b *strings.Builder, indent, text string) {
	for line := range strings.Lines(masked(text)) {
		fmt.Fprintf(b, "%s| %s\n", indent, strings.TrimRight(line, "\r\n"))
	}
}

// masked takes what looks like a commit out of a text.
func masked(text string) string {
	return longHex.ReplaceAllStringFunc(text, func(s string) string {
		if strings.ContainsAny(s, "abcdef") && strings.ContainsAny(s, "0123456789") {
			return "COMMIT"
		}
		return s
	})
}

// commitName names a commit by what it holds.
func (s *Server) commitName(r *repository, sha string) string {
	name, err := s.git(r, "", "show", "--no-patch", "--format=%T %s", sha)
	if err != nil {
		return "none"
	}
	return name
}

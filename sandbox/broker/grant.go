package broker

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"ship/config/signature"
)

// What Verify refuses a token with.
var (
	// ErrToken: nobody with our key signed this.
	ErrToken = errors.New("token is not valid")
	// ErrExpired: it was good once.
	ErrExpired = errors.New("token has expired")
)

// Grant is what the processes of one turn may do. Zero means nothing: no
// calls, no money, no repository, no push.
type Grant struct {
	Session string `json:"s"`
	Turn    string `json:"t"`
	// Repo is OWNER/NAME, the only repository that can be reached.
	Repo string `json:"r,omitempty"`
	// RepoKey is opaque: Credentials finds the repository by it.
	RepoKey string `json:"k,omitempty"`
	// Push is the one full ref that may be pushed: refs/heads/…, or one below
	// Checkpoints, which may be deleted as well.
	Push string `json:"p,omitempty"`
	// Models that may be called, each as PROVIDER/MODEL.
	Models []string `json:"m,omitempty"`
	// Calls to models that the turn may make.
	Calls int `json:"c,omitempty"`
	// BudgetUSD that it may spend, in US dollars. See the package's documents
	// on how far a turn can exceed it.
	BudgetUSD float64 `json:"b,omitempty"`
	// Person is whose turn it is, in letters, digits, dots, dashes and colons;
	// empty: nobody's whose spending is counted.
	Person string `json:"w,omitempty"`
	// PersonDayUSD is what the person may spend on a day, and DayUSD what all may
	// together; days are those of UTC. Zero: there is no such limit, as it is not
	// the turn's to have one.
	PersonDayUSD float64 `json:"pd,omitempty"`
	DayUSD       float64 `json:"dd,omitempty"`
	// Expires ends everything, also what is under way then.
	Expires time.Time `json:"x"`
}

// Checkpoints is where sessions keep what they have not published, each in a
// ref of its own. Nothing that a code host does with branches happens there.
const Checkpoints = "refs/ship/wip/"

// maxToken is far more than a grant needs; a longer one is not looked at.
const maxToken = 8 << 10

var (
	repoName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}$`)
	branch   = regexp.MustCompile(`^refs/heads/[A-Za-z0-9_.][A-Za-z0-9_./@+=#-]*$`)
	person   = regexp.MustCompile(`^[A-Za-z0-9.:-]{1,120}$`)
	// A session's id; see session.ID.
	checkpoint = regexp.MustCompile(`^refs/ship/wip/[A-Za-z0-9][A-Za-z0-9.-]*$`)
)

func (g Grant) validate() error {
	switch {
	case g.Session == "" || g.Turn == "":
		return errors.New("a grant names its session and turn")
	case g.Expires.IsZero():
		return errors.New("a grant expires")
	case g.Person != "" && !person.MatchString(g.Person):
		return errors.New("a grant's person has characters that no account may have")
	case g.Calls < 0 || g.BudgetUSD < 0 || g.PersonDayUSD < 0 || g.DayUSD < 0:
		return errors.New("a grant's limits are not negative")
	case g.Repo != "" && !validRepo(g.Repo):
		return fmt.Errorf("repository %q is not OWNER/NAME", g.Repo)
	case g.Push != "" && (!branch.MatchString(g.Push) && !checkpoint.MatchString(g.Push) || strings.Contains(g.Push, "..")):
		return fmt.Errorf("%q is no full ref of a branch or a checkpoint", g.Push)
	}
	return nil
}

// validRepo: both halves become path segments of an upstream address.
func validRepo(name string) bool {
	owner, repo, _ := strings.Cut(name, "/")
	dots := []string{".", ".."}
	return repoName.MatchString(name) && !slices.Contains(dots, owner) && !slices.Contains(dots, repo)
}

func (g Grant) account() string { return account(g.Session, g.Turn) }

// Signer makes and checks tokens. A token holds its grant, so that any process
// with the key can check it, also after a restart.
type Signer struct{ key signature.Key }

// KeySize of a Signer's key, in bytes.
const KeySize = 32

// tokenPrefix names the format. A grant that gains a field which restricts
// needs a new one: an older release refuses what it does not know. A token of
// the format before, which knew no persons and no days, is good until it expires.
const (
	tokenPrefix    = "ship2."
	tokenPrefixOld = "ship1."
)

// NewSigner returns a Signer with a key of KeySize random bytes.
func NewSigner(key []byte) (*Signer, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("token key has %d bytes, want %d", len(key), KeySize)
	}
	return &Signer{key: slices.Clone(key)}, nil
}

// Sign returns the token of a grant: printable ASCII without spaces, fit for a
// header. Signing the same grant twice gives the same token.
func (s *Signer) Sign(g Grant) (string, error) {
	if err := g.validate(); err != nil {
		return "", fmt.Errorf("sign grant: %w", err)
	}
	g.Expires = g.Expires.UTC()
	claims, err := json.Marshal(g)
	if err != nil {
		return "", fmt.Errorf("sign grant: %w", err)
	}
	signed := tokenPrefix + base64.RawURLEncoding.EncodeToString(claims)
	token := signed + "." + s.key.Sign(signed)
	if len(token) > maxToken {
		return "", fmt.Errorf("sign grant: token of %d bytes is too long", len(token))
	}
	return token, nil
}

// Verify returns the grant of a token that is good now. ErrToken, ErrExpired;
// neither error holds any of the token.
func (s *Signer) Verify(token string, now time.Time) (Grant, error) {
	dot := strings.LastIndexByte(token, '.')
	known := strings.HasPrefix(token, tokenPrefix) || strings.HasPrefix(token, tokenPrefixOld)
	if len(token) > maxToken || dot < len(tokenPrefix) || !known {
		return Grant{}, ErrToken
	}
	signed := token[:dot]
	if !s.key.Signed(signed, token[dot+1:]) {
		return Grant{}, ErrToken
	}
	g, err := decodeGrant(signed[len(tokenPrefix):])
	if err != nil {
		return Grant{}, ErrToken
	}
	if !now.Before(g.Expires) {
		return Grant{}, ErrExpired
	}
	return g, nil
}

// decodeGrant reads claims that were signed with our key.
func decodeGrant(claims string) (Grant, error) {
	raw, err := base64.RawURLEncoding.DecodeString(claims)
	if err != nil {
		return Grant{}, err
	}
	var g Grant
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&g); err != nil {
		return Grant{}, err
	}
	return g, g.validate()
}

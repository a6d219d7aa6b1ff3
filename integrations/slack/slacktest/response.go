package slacktest

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"ship/bot/standin"
)

const responsePath = "/response/"

// How long and how often a response URL works: by the older documentation.
const (
	responseLasts = 30 * time.Minute
	responseUses  = 5
)

// responder is a response URL.
type responder struct {
	to      *user
	channel *channel
	// message and ephemeral are what was acted on; nil: neither.
	message   *message
	ephemeral *ephemeral
	expires   time.Time
	uses      int
}

// responseURL makes one. The caller holds mu.
func (s *Server) responseURL(r responder) string {
	key := random(12)
	r.expires = s.now().Add(responseLasts)
	s.responders[key] = &r
	return s.URL + responsePath + key
}

// response is what is sent to one, or what a command is answered with.
type response struct {
	Text            string          `json:"text"`
	Blocks          json.RawMessage `json:"blocks"`
	ThreadTS        string          `json:"thread_ts"`
	ResponseType    string          `json:"response_type"`
	ReplaceOriginal bool            `json:"replace_original"`
	DeleteOriginal  bool            `json:"delete_original"`
}

func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request) {
	defer s.touch()
	if s.Strike(w, r, "response_url") {
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var sent response
	if err != nil || json.Unmarshal(body, &sent) != nil {
		http.Error(w, "invalid_payload", http.StatusBadRequest)
		return
	}
	status, err := s.respond(r.PathValue("key"), sent)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	standin.WriteJSON(w, http.StatusOK, []byte(`{"ok":true}`))
}

func (s *Server) respond(key string, sent response) (status int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.responders[key]
	switch {
	case r == nil || s.tokenGone == "account_inactive":
		return http.StatusNotFound, refuse("no_service")
	case !s.now().Before(r.expires):
		return http.StatusNotFound, refuse("expired_url")
	case r.uses >= responseUses:
		return http.StatusNotFound, refuse("used_url")
	}
	r.uses++
	return http.StatusBadRequest, s.answer(r, sent)
}

// answer shows a response to whom it is for.
func (s *Server) answer(r *responder, sent response) error {
	if sent.DeleteOriginal {
		r.erase()
		return nil
	}
	in := args{values: map[string]string{"text": sent.Text, "blocks": string(sent.Blocks)}}
	if string(sent.Blocks) == "null" {
		delete(in.values, "blocks")
	}
	said, err := s.readContent(in)
	if err != nil {
		return err
	}
	thread, err := s.root(r.channel, sent.ThreadTS)
	if err != nil {
		return err
	}
	switch {
	case sent.ReplaceOriginal && r.ephemeral != nil:
		r.ephemeral.content = said
	case sent.ReplaceOriginal && r.message != nil:
		said.metadata = r.message.metadata
		r.message.content = said
		r.message.updates++
	case sent.ResponseType == "in_channel":
		s.say(r.channel, &message{author: s.bot, content: said, thread: thread})
	default:
		s.whisper(r.channel, r.to, said, thread)
	}
	return nil
}

func (r *responder) erase() {
	if r.ephemeral != nil {
		r.ephemeral.gone = true
	} else if r.message != nil {
		r.message.remove()
	}
}

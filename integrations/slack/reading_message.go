package slack

import (
	"encoding/json"
	"fmt"
	"slices"

	api "github.com/slack-go/slack"
)

// message is what ship needs of a message that it reads. Whatever Slack or
// another app has made different from this is left empty: see decode.
type message struct {
	TS       string `json:"ts"`
	Thread   string `json:"thread_ts"`
	Subtype  string `json:"subtype"`
	Text     string `json:"text"`
	User     string `json:"user"`
	Username string `json:"username"`
	Bot      string `json:"bot_id"`
	App      string `json:"app_id"`
	Profile  struct {
		Name string `json:"name"`
	} `json:"bot_profile"`
	// UserTeam and Team are the workspace of who wrote.
	UserTeam string `json:"user_team"`
	Team     string `json:"team"`
	Hidden   bool   `json:"hidden"`
	Edited   edited `json:"edited"`
	Metadata struct {
		Type    string `json:"event_type"`
		Payload struct {
			ID string `json:"outbox_id"`
		} `json:"event_payload"`
	} `json:"metadata"`
	Files       []file       `json:"files"`
	Attachments []attachment `json:"attachments"`
	Reactions   []struct {
		Name  string   `json:"name"`
		Users []string `json:"users"`
	} `json:"reactions"`
	// ReplyUsers are some of those who replied, and LatestReply is when.
	ReplyUsers  []string `json:"reply_users"`
	LatestReply string   `json:"latest_reply"`
	// Blocks are taken apart where that is needed: see blocks.
	Blocks json.RawMessage `json:"blocks"`
}

// file that is attached to a message.
type file struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Mimetype string `json:"mimetype"`
	Mode     string `json:"mode"`
	Access   string `json:"file_access"`
	URL      string `json:"url_private"`
	// Size in bytes.
	Size     int  `json:"size"`
	External bool `json:"is_external"`
}

// attachment is a message that was forwarded, the preview of a link, or what a
// program attached.
type attachment struct {
	Pretext       string `json:"pretext"`
	Title         string `json:"title"`
	Text          string `json:"text"`
	Fallback      string `json:"fallback"`
	AuthorName    string `json:"author_name"`
	AuthorSubname string `json:"author_subname"`
	// Share: a person forwarded it. Unfurl: it is the preview of a message.
	Share  bool   `json:"is_share"`
	Unfurl bool   `json:"is_msg_unfurl"`
	Files  []file `json:"files"`
}

// identified are the messages that have a name, which is when they were sent. What
// has none is no message.
func identified(all []message) []message {
	return slices.DeleteFunc(all, func(m message) bool { return !validTS.MatchString(m.TS) })
}

// attached are the files that came with it, or with what is forwarded in it.
func (m message) attached() []file {
	all := slices.Clone(m.Files)
	for _, a := range m.Attachments {
		all = append(all, a.Files...)
	}
	return all
}

// isReply: it is below another, whether or not it was shown to all.
func (m message) isReply() bool { return m.Thread != "" && m.Thread != m.TS }

// outboxID is the id under which a message was decided; empty: none. Others can
// put into the metadata of theirs whatever they like: see wrote.
func (m message) outboxID() string {
	if m.Metadata.Type != eventType {
		return ""
	}
	return m.Metadata.Payload.ID
}

// blocks of a message of ours, which are of kinds that the library knows.
func (m message) blocks() ([]api.Block, error) {
	if len(m.Blocks) == 0 {
		return nil, nil
	}
	var all api.Blocks
	if err := json.Unmarshal(m.Blocks, &all); err != nil {
		return nil, fmt.Errorf("decode blocks: %w", err)
	}
	return all.BlockSet, nil
}

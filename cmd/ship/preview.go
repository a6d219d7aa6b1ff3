package main

import (
	"net/http"
	"path/filepath"

	"ship/sandbox/broker"
	"ship/sandbox/preview"
	"ship/session/turn"
)

// exhibit lets people look at what boxes serve, if the operator wants that. A
// host of its own, and all of it: nothing else of ship's answers there.
func exhibit(s Settings, boxes preview.Boxes, worker *turn.Worker, mounts map[string]http.Handler) error {
	if s.Preview.URL == "" {
		return nil
	}
	key, err := broker.LoadKey(filepath.Join(s.DataDir, "broker.key"))
	if err != nil {
		return err
	}
	links, err := preview.NewLinks(s.Preview.URL, key)
	if err != nil {
		return err
	}
	worker.Previews = links
	mounts[hostOf(s.Preview.URL)+"/"] = preview.NewProxy(links, boxes)
	return nil
}

package dockertest

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
)

// routes are the calls. A version in front of the path is not looked at.
func (e *Engine) routes() http.Handler {
	mux := http.NewServeMux()
	for _, route := range []struct {
		pattern, call string
		handle        http.HandlerFunc
	}{
		{"GET /info", "info", e.tell},
		{"GET /images/{image}/json", "image", image},
		{"POST /containers/create", "create", e.create},
		{"GET /containers/json", "list", e.list},
		{"POST /containers/{id}/start", "start", e.on(start)},
		{"POST /containers/{id}/stop", "stop", e.on(stop)},
		{"POST /containers/{id}/unpause", "unpause", e.on(unpause)},
		{"POST /containers/{id}/wait", "wait", e.wait},
		{"GET /containers/{id}/logs", "logs", e.on(logs)},
		{"DELETE /containers/{id}", "remove", e.on(e.remove)},
	} {
		mux.HandleFunc(route.pattern, func(w http.ResponseWriter, r *http.Request) {
			e.perform(w, r, route.call, route.handle)
		})
	}
	mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Api-Version", "1.48")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if version, rest, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); ok && strings.HasPrefix(version, "v1.") {
			r.URL.Path = "/" + rest
		}
		mux.ServeHTTP(w, r)
	})
}

// perform does a call, or what a fault makes of it.
func (e *Engine) perform(w http.ResponseWriter, r *http.Request, call string, handle http.HandlerFunc) {
	f := e.take(call)
	if f == nil {
		handle(w, r)
		return
	}
	if f.Then != nil {
		late := httptest.NewRecorder()
		handle(late, r)
		f.Then()
		w.Header().Set("Content-Type", late.Header().Get("Content-Type"))
		w.WriteHeader(late.Code)
		_, _ = w.Write(late.Body.Bytes())
		return
	}
	if f.After {
		handle(httptest.NewRecorder(), r)
	}
	_, _ = io.Copy(io.Discard, r.Body) // whoever is still sending would not hear the answer
	if f.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	refuse(w, f.Status, "%s", f.Message)
}

// on answers 404 where there is no such container. The lock is held throughout.
func (e *Engine) on(next func(http.ResponseWriter, *http.Request, *box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		c := e.containers[r.PathValue("id")]
		if c == nil {
			refuse(w, http.StatusNotFound, "No such container: %s", r.PathValue("id"))
			return
		}
		next(w, r, c)
	}
}

func (e *Engine) tell(w http.ResponseWriter, _ *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	reply(w, http.StatusOK, e.info)
}

func image(w http.ResponseWriter, r *http.Request) {
	if name := r.PathValue("image"); name != Image {
		refuse(w, http.StatusNotFound, "No such image: %s", name)
		return
	}
	reply(w, http.StatusOK, map[string]string{"Id": "sha256:0"})
}

func (e *Engine) create(w http.ResponseWriter, r *http.Request) {
	var o container.CreateRequest
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.HostConfig == nil {
		refuse(w, http.StatusBadRequest, "the body cannot be read: %v", err)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	name := r.FormValue("name")
	for _, c := range e.containers {
		if c.name == name {
			refuse(w, http.StatusConflict, "Conflict. The container name %q is already in use by container %q.", "/"+name, c.id)
			return
		}
	}
	if o.Image != Image {
		refuse(w, http.StatusNotFound, "No such image: %s", o.Image)
		return
	}
	if limit := int64(e.info.NCPU) * 1e9; o.HostConfig.NanoCPUs > limit {
		refuse(w, http.StatusBadRequest, "range of CPUs is from 0.01 to %d.00, as there are only %[1]d CPUs available", e.info.NCPU)
		return
	}
	for _, m := range o.HostConfig.Mounts {
		if _, err := os.Stat(m.Source); err != nil {
			refuse(w, http.StatusBadRequest, "invalid mount config for type \"bind\": bind source path does not exist: %s", m.Source)
			return
		}
	}
	e.complaints = append(e.complaints, judge(o)...)
	c := &box{id: newID(), name: name, order: o, created: time.Now(), removed: make(chan struct{})}
	e.containers[c.id] = c
	reply(w, http.StatusCreated, map[string]any{"Id": c.id, "Warnings": []string{}})
}

func newID() string {
	id := make([]byte, 32)
	_, _ = rand.Read(id)
	return hex.EncodeToString(id)
}

// list filters by labels, which have to be there all.
func (e *Engine) list(w http.ResponseWriter, r *http.Request) {
	var filters map[string]map[string]bool
	if text := r.FormValue("filters"); text != "" {
		if err := json.Unmarshal([]byte(text), &filters); err != nil {
			refuse(w, http.StatusBadRequest, "the filters cannot be read: %v", err)
			return
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	found := []container.Summary{}
	for _, c := range e.containers {
		state := c.state()
		if c.carries(filters["label"]) && (r.FormValue("all") == "1" || state == container.StateRunning) {
			found = append(found, container.Summary{ID: c.id, Names: []string{"/" + c.name}, Labels: c.order.Labels, State: state, Created: c.created.Unix()})
		}
	}
	slices.SortFunc(found, func(a, b container.Summary) int { return strings.Compare(a.ID, b.ID) })
	reply(w, http.StatusOK, found)
}

func start(w http.ResponseWriter, _ *http.Request, c *box) {
	switch c.state() {
	case container.StateRunning:
		w.WriteHeader(http.StatusNotModified)
		return
	case container.StatePaused:
		refuse(w, http.StatusConflict, "cannot start a paused container, try unpause instead")
		return
	}
	if err := c.start(); err != nil {
		refuse(w, http.StatusInternalServerError, "%v", err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func stop(w http.ResponseWriter, _ *http.Request, c *box) {
	if s := c.state(); s == container.StateExited || s == container.StateCreated {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	grace := 10
	if c.order.StopTimeout != nil {
		grace = *c.order.StopTimeout
	}
	c.halt(time.Duration(grace) * time.Second)
	w.WriteHeader(http.StatusNoContent)
}

func unpause(w http.ResponseWriter, _ *http.Request, c *box) {
	if c.state() != container.StatePaused {
		refuse(w, http.StatusConflict, "Container %s is not paused", c.id)
		return
	}
	if err := c.thaw(); err != nil {
		refuse(w, http.StatusInternalServerError, "%v", err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// logs are in the form of containers without a terminal: each piece has a head
// of eight bytes, with the stream and the length.
func logs(w http.ResponseWriter, _ *http.Request, c *box) {
	text := c.said.take()
	head := binary.BigEndian.AppendUint32([]byte{2, 0, 0, 0}, uint32(len(text)))
	_, _ = w.Write(append(head, text...))
}

func (e *Engine) remove(w http.ResponseWriter, r *http.Request, c *box) {
	if s := c.state(); r.FormValue("force") != "1" && (s == container.StateRunning || s == container.StatePaused) {
		refuse(w, http.StatusConflict, "cannot remove container %s: container is running", c.id)
		return
	}
	c.halt(0)
	delete(e.containers, c.id)
	close(c.removed)
	w.WriteHeader(http.StatusNoContent)
}

// wait answers its head at once, and the rest when the container is gone.
func (e *Engine) wait(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	c := e.containers[r.PathValue("id")]
	e.mu.Unlock()
	if c == nil {
		refuse(w, http.StatusNotFound, "No such container: %s", r.PathValue("id"))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	select {
	case <-c.removed:
		_ = json.NewEncoder(w).Encode(container.WaitResponse{})
	case <-r.Context().Done():
	}
}

// judge notes what would open a container.
func judge(o container.CreateRequest) []string {
	h := o.HostConfig
	var all []string
	for _, one := range []struct {
		open bool
		what string
	}{
		{h.Privileged, "privileged"},
		{!slices.Equal(h.CapDrop, []string{"ALL"}) || len(h.CapAdd) > 0, "capabilities"},
		{!slices.Equal(h.SecurityOpt, []string{"no-new-privileges:true"}), "security options"},
		{!h.ReadonlyRootfs, "a writable system"},
		{h.NetworkMode != "none" || len(h.PortBindings) > 0 || h.PublishAllPorts, "a network"},
		{h.IpcMode != "private" || h.PidMode != "" || h.UTSMode != "" || h.UsernsMode != "", "a namespace of the machine"},
		{len(h.Devices) > 0 || len(h.Binds) > 0 || len(h.VolumesFrom) > 0, "devices or volumes"},
		{h.RestartPolicy.Name != "no", "it comes back by itself"},
		{o.User == "" || o.User == "root", "root"},
		{h.PidsLimit == nil || h.Memory == 0 || h.NanoCPUs == 0 || h.MemorySwap != h.Memory, "no limits"},
	} {
		if one.open {
			all = append(all, one.what)
		}
	}
	for _, m := range h.Mounts {
		if strings.HasSuffix(m.Source, ".sock") || m.BindOptions != nil && m.BindOptions.CreateMountpoint {
			all = append(all, "mount of "+m.Source)
		}
	}
	return all
}

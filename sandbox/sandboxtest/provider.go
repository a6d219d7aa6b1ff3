package sandboxtest

import (
	"bytes"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"ship/sandbox"
)

func createTwice(t *testing.T, s suite) {
	first := s.create(t, spec(t))
	second := s.create(t, spec(t))
	if first.ID != second.ID {
		t.Errorf("two boxes of one key: %s and %s", first.ID, second.ID)
	}
	if first.Key != t.Name() || first.State != sandbox.Running {
		t.Errorf("Create returned %+v", first)
	}
	if left := time.Until(second.Expires); left < ttl-patience || left > ttl+patience {
		t.Errorf("the box expires in %s, want about %s", left, ttl)
	}
}

func createConcurrently(t *testing.T, s suite) {
	ids := make([]string, 4)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			info, err := s.Open(t).Create(t.Context(), spec(t))
			if err != nil {
				t.Errorf("Create: %v", err)
			}
			ids[i] = info.ID
		})
	}
	all.Wait()
	want := s.create(t, spec(t)).ID
	for _, id := range ids {
		if id != want {
			t.Errorf("a box %q besides %q", id, want)
		}
	}
}

func createGeneration(t *testing.T, s suite) {
	for _, step := range []struct{ give, want int64 }{{3, 3}, {5, 5}, {4, 5}} {
		wanted := spec(t)
		wanted.Generation = step.give
		info := s.create(t, wanted)
		if info.Generation != step.want || info.Labels[sandbox.LabelGeneration] != strconv.FormatInt(step.want, 10) {
			t.Errorf("generation %d gave %d, labels %v, want %d", step.give, info.Generation, info.Labels, step.want)
		}
		if found := s.find(t, info.ID); found.Generation != step.want {
			t.Errorf("List says generation %d, want %d", found.Generation, step.want)
		}
	}
}

func createAnother(t *testing.T, s suite) {
	one, other := spec(t), spec(t)
	other.Key += "/other"
	first := s.create(t, one)
	if s.Single {
		_, err := s.Create(t.Context(), other)
		wantErr(t, "a second box", err, sandbox.ErrQuota)
		return
	}
	second := s.create(t, other)
	if first.ID == second.ID {
		t.Fatalf("two keys share box %s", first.ID)
	}
	shell(t, s.attach(t, first.ID), "mark", "echo here > /work/mark")
	if out := shell(t, s.attach(t, second.ID), "look", "ls /work/mark"); out.ExitCode == 0 {
		t.Error("one box sees the files of the other")
	}
}

// find returns what List says of a box.
func (s suite) find(t *testing.T, id string) sandbox.Info {
	t.Helper()
	infos, err := s.List(t.Context(), nil)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	for _, info := range infos {
		if info.ID == id {
			return info
		}
	}
	return sandbox.Info{}
}

func list(t *testing.T, s suite) {
	wanted := spec(t)
	wanted.Labels = map[string]string{"team": "a b/c", "stage": "test"}
	info := s.create(t, wanted)
	for _, try := range []struct {
		labels map[string]string
		found  bool
	}{
		{map[string]string{"team": "a b/c"}, true},
		{map[string]string{"team": "a b/c", "stage": "test"}, true},
		{map[string]string{sandbox.LabelSession: wanted.Key}, true},
		{map[string]string{sandbox.LabelGeneration: "1", "team": "a b/c"}, true},
		{map[string]string{"team": "a"}, false},
		{map[string]string{"team": "a b/c", "stage": "live"}, false},
		{map[string]string{"nobody": ""}, false},
	} {
		infos, err := s.Open(t).List(t.Context(), try.labels)
		if err != nil {
			t.Fatalf("List(%v): %v", try.labels, err)
		}
		found := false
		for _, other := range infos {
			found = found || other.ID == info.ID && other.Key == wanted.Key
		}
		if found != try.found {
			t.Errorf("List(%v) found it: %v, want %v", try.labels, found, try.found)
		}
	}
}

func attachUnknown(t *testing.T, s suite) {
	for _, id := range []string{"never-was", "../etc", "", "a/b"} {
		_, err := s.Attach(t.Context(), id, ttl)
		wantErr(t, "Attach("+strconv.Quote(id)+")", err, sandbox.ErrGone)
		wantErr(t, "Extend("+strconv.Quote(id)+")", s.Extend(t.Context(), id, time.Now().Add(ttl)), sandbox.ErrGone)
		_, err = s.Info(t.Context(), id)
		wantErr(t, "Info("+strconv.Quote(id)+")", err, sandbox.ErrGone)
		if err := s.Destroy(t.Context(), id); err != nil {
			t.Errorf("Destroy(%q): %v", id, err)
		}
	}
}

// look: Info says what List says, and leaves the box as it is.
func look(t *testing.T, s suite) {
	wanted := spec(t)
	wanted.Labels = map[string]string{"team": "a b/c"}
	made := s.create(t, wanted)
	for range 2 {
		info, err := s.Open(t).Info(t.Context(), made.ID)
		if err != nil {
			t.Fatalf("Info: %v", err)
		}
		if listed := s.find(t, made.ID); info.Key != wanted.Key || info.Labels["team"] != "a b/c" || info.State != sandbox.Running ||
			info.Generation != listed.Generation || !info.Expires.Equal(listed.Expires) || !info.Created.Equal(listed.Created) {
			t.Errorf("Info says %+v, List %+v", info, listed)
		}
	}
	until := time.Now().Add(20 * time.Minute)
	if err := s.Extend(t.Context(), made.ID, until); err != nil {
		t.Fatalf("Extend: %v", err)
	}
	if info, err := s.Info(t.Context(), made.ID); err != nil || info.Expires.Sub(until).Abs() > patience {
		t.Errorf("extended to %s, Info says %s, %v", until, info.Expires, err)
	}
}

func extend(t *testing.T, s suite) {
	info := s.create(t, spec(t))
	far := time.Now().Add(10 * time.Minute)
	for _, until := range []time.Time{far, time.Now().Add(time.Second), {}} {
		if err := s.Extend(t.Context(), info.ID, until); err != nil {
			t.Fatalf("Extend(%s): %v", until, err)
		}
	}
	if _, err := s.Attach(t.Context(), info.ID, time.Second); err != nil {
		t.Fatalf("Attach: %v", err)
	}
	if got := s.find(t, info.ID).Expires; got.Before(far.Add(-time.Second)) {
		t.Errorf("the box expires at %s, it was extended to %s", got, far)
	}
}

func expire(t *testing.T, s suite) {
	wanted := spec(t)
	wanted.TTL = s.shortLife(t)
	info := s.create(t, wanted)
	box, err := s.Attach(t.Context(), info.ID, time.Second)
	if err != nil {
		t.Fatalf("Attach: %v", err)
	}
	await(t, "the box ends", func() bool {
		_, err := s.Attach(t.Context(), info.ID, 0)
		return errors.Is(err, sandbox.ErrGone)
	})
	if early := time.Until(info.Expires); early > 0 {
		t.Errorf("the box ended %s before its time", early)
	}
	_, err = box.Process(t.Context(), "any")
	wantErr(t, "an old handle", err, sandbox.ErrGone)
	await(t, "List forgets it", func() bool { return s.find(t, info.ID).ID == "" })
}

// shortLife is how long a box may live that is to be made, entered and seen to
// end: so long that this machine, as busy as it is, can do the first two.
func (s suite) shortLife(t *testing.T) time.Duration {
	t.Helper()
	begin := time.Now()
	info := s.create(t, spec(t))
	s.attach(t, info.ID)
	took := time.Since(begin)
	if err := s.Destroy(t.Context(), info.ID); err != nil {
		t.Fatalf("Destroy: %v", err)
	}
	return 2*time.Second + (6 * took).Round(time.Second)
}

func destroyTwice(t *testing.T, s suite) {
	info := s.create(t, spec(t))
	box := s.attach(t, info.ID)
	for range 2 {
		if err := s.Destroy(t.Context(), info.ID); err != nil {
			t.Fatalf("Destroy: %v", err)
		}
	}
	_, err := s.Attach(t.Context(), info.ID, ttl)
	wantErr(t, "Attach", err, sandbox.ErrGone)
	wantErr(t, "Extend", s.Extend(t.Context(), info.ID, time.Now().Add(ttl)), sandbox.ErrGone)
	_, err = s.Info(t.Context(), info.ID)
	wantErr(t, "Info", err, sandbox.ErrGone)
	_, err = box.Spawn(t.Context(), command("late", "true"))
	wantErr(t, "Spawn by an old handle", err, sandbox.ErrGone)
	if found := s.find(t, info.ID); found.ID != "" {
		t.Errorf("List still has %+v", found)
	}
}

// destroyFresh: after a box comes a new one, with another id and nothing in it.
func destroyFresh(t *testing.T, s suite) {
	first := s.create(t, spec(t))
	box := s.attach(t, first.ID)
	// What a build leaves behind: folders that nobody may write.
	shell(t, box, "leave", "mkdir -p /work/repo/a/b && touch /work/repo/a/b/c && chmod -R a-w /work/repo/a")
	spawn(t, box, command("daemon", "sleep 600"))
	if err := s.Destroy(t.Context(), first.ID); err != nil {
		t.Fatalf("Destroy: %v", err)
	}
	second := s.create(t, spec(t))
	if first.ID == second.ID {
		t.Errorf("the new box has the id of the old one, %s", first.ID)
	}
	box = s.attach(t, second.ID)
	_, err := box.Process(t.Context(), "daemon")
	wantErr(t, "a process of the old box", err, sandbox.ErrGone)
	if out := shell(t, box, "look", "ls -A /work/repo"); out.ExitCode == 0 {
		t.Errorf("the new box holds files of the old one: %s", out.Data)
	}
}

func pause(t *testing.T, s suite) {
	info := s.create(t, spec(t))
	box := s.attach(t, info.ID)
	if err := box.Write(t.Context(), "/work/kept", []byte("kept"), 0o644); err != nil {
		t.Fatalf("Write: %v", err)
	}
	err := s.Pause(t.Context(), info.ID)
	if errors.Is(err, sandbox.ErrUnsupported) {
		return
	}
	if err != nil {
		t.Fatalf("Pause: %v", err)
	}
	if err := s.Pause(t.Context(), info.ID); err != nil {
		t.Errorf("Pause, again: %v", err)
	}
	for range 2 { // a look does not wake it
		if now, err := s.Info(t.Context(), info.ID); err != nil || now.State != sandbox.Paused {
			t.Errorf("Info says %+v, %v", now, err)
		}
	}
	data, err := s.attach(t, info.ID).ReadFrom(t.Context(), "/work/kept", 0)
	if err != nil || !bytes.Equal(data, []byte("kept")) {
		t.Errorf("after a pause the file holds %q, %v", data, err)
	}
}

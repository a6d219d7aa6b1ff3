package session

import "slices"

// voice makes the session speak in a thread too.
func (n *step) voice(r Request, talks bool) {
	v, _ := n.meet(r.Thread)
	if v == nil {
		return
	}
	v.Talks, v.Silent = talks, false
	heard := r.Verb == Instruct || r.Verb == Finish || r.Verb == Retry // the agent gets to see what came before
	if v.Talks && heard && r.At.After(v.Heard) {
		v.Heard = r.At
	}
}

// meet finds a thread among those that the session speaks in, or adds it; nil:
// there are too many.
func (n *step) meet(t Thread) (v *Voice, added bool) {
	i := slices.IndexFunc(n.Threads, func(v Voice) bool { return v.Thread == t })
	if i < 0 && len(n.Threads) < maxVoices {
		n.Threads = append(n.Threads, Voice{Thread: t})
		i, added = len(n.Threads)-1, true
	}
	if i < 0 {
		return nil, false
	}
	return &n.Threads[i], added
}

// watch makes the session show its state in a thread that nobody speaks with it
// in.
func (n *step) watch(t Thread) {
	if v, added := n.meet(t); added {
		v.Silent = true
	}
}

package session

// noteStop keeps when somebody said stop, for what was asked before that and
// comes later: a platform repeats a webhook that failed after minutes.
func (n *step) noteStop(r Request) {
	for i := range n.Threads {
		if v := &n.Threads[i]; v.Thread == r.Thread && r.At.After(v.Stopped) {
			v.Stopped = r.At
		}
	}
}

// overtaken: r asks for work, and somebody said stop in its thread since. Only
// where people are spoken with, for elsewhere a request that was edited still
// has the time at which it was first written.
func (n *step) overtaken(r Request) bool {
	if !r.Early || r.At.IsZero() || r.Verb != Instruct && r.Verb != Finish && r.Verb != Retry {
		return false
	}
	for _, v := range n.Threads {
		if v.Thread == r.Thread {
			return r.At.Before(v.Stopped)
		}
	}
	return false
}

package turn

// Places says how the places for boxes at work in this process are taken: how
// many of them, and how many sessions wait for one.
func (w *Worker) Places() (taken, waiting int) { return w.slots.count() }

func (s *slots) count() (held, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	return len(s.held), len(s.waiting)
}

package docker

import "time"

// SetPatience spares a test to wait for what never comes.
func (p *Provider) SetPatience(d time.Duration) { p.patience = d }

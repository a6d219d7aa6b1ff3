package redis

import (
	_ "embed"

	goredis "github.com/redis/go-redis/v9"
)

// The scripts. They are addressed by their content (EVALSHA, not FUNCTION), so
// that an old and a new release can run side by side.
//
// Their first line makes Redis check memory, disk and role before anything
// runs. Those with allow-oom may run when memory is full: they end work, and
// so free memory.
var (
	//go:embed scripts/ingest.lua
	ingestText string
	//go:embed scripts/due.lua
	dueText string
	//go:embed scripts/claim.lua
	claimText string
	//go:embed scripts/peek.lua
	peekText string
	//go:embed scripts/renew.lua
	renewText string
	//go:embed scripts/commit.lua
	commitText string
	//go:embed scripts/forget.lua
	forgetText string
	//go:embed scripts/spend.lua
	spendText string
	//go:embed scripts/swap.lua
	swapText string
	//go:embed scripts/lock.lua
	lockText string
	//go:embed scripts/unlock.lua
	unlockText string
	//go:embed scripts/take.lua
	takeText string
	//go:embed scripts/tell.lua
	tellText string
	//go:embed scripts/place.lua
	placeText string

	ingestScript = goredis.NewScript(ingestText)
	dueScript    = goredis.NewScript(dueText)
	claimScript  = goredis.NewScript(claimText)
	peekScript   = goredis.NewScript(peekText)
	renewScript  = goredis.NewScript(renewText)
	commitScript = goredis.NewScript(commitText)
	forgetScript = goredis.NewScript(forgetText)
	spendScript  = goredis.NewScript(spendText)
	swapScript   = goredis.NewScript(swapText)
	lockScript   = goredis.NewScript(lockText)
	unlockScript = goredis.NewScript(unlockText)
	takeScript   = goredis.NewScript(takeText)
	tellScript   = goredis.NewScript(tellText)
	placeScript  = goredis.NewScript(placeText)
)

func allScripts() []*goredis.Script {
	return []*goredis.Script{
		ingestScript, dueScript, claimScript, peekScript,
		renewScript, commitScript, forgetScript, spendScript,
		swapScript, lockScript, unlockScript, takeScript, tellScript, placeScript,
	}
}

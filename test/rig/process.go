package rig

import "sync"

// process is what the world sees of a running program. What it does reaches
// the disk, the store and the network only through pass: a program that was
// killed does nothing more, one that was paused does it later. Inside, the
// goroutines of either go on for a while; nobody can tell.
type process struct {
	name string

	mu   sync.Mutex
	dead bool
	thaw chan struct{} // closed when the pause ends; nil while there is none
}

// pass waits while the program is paused. It reports false once it is dead:
// then the caller must do nothing.
func (p *process) pass() bool {
	for {
		p.mu.Lock()
		dead, thaw := p.dead, p.thaw
		p.mu.Unlock()
		switch {
		case dead:
			return false
		case thaw == nil:
			return true
		}
		<-thaw
	}
}

// paused reports whether the program stands still, or is dead.
func (p *process) paused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead || p.thaw != nil
}

// pause stops the program until resume.
func (p *process) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thaw == nil && !p.dead {
		p.thaw = make(chan struct{})
	}
}

// resume ends a pause, if there is one.
func (p *process) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thaw != nil {
		close(p.thaw)
		p.thaw = nil
	}
}

// kill ends the program at this instant.
func (p *process) kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.resume()
}

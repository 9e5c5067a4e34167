// Package agents is the leader's side of the Session streams: one long-lived
// connection to each agent, commands one way, events the other (DESIGN.md
// section 5). It decides only when to connect again; the commands and the
// meaning of the answers are the leader's business.
package agents

import (
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Connected opens a stream.
type Connected struct {
	grant.Hello
	// Fit is made of Host, in the stream's goroutine: that may take long.
	Fit *fit.Host
}

// NodeID returns Node.
func (e Connected) NodeID() resource.NodeID { return e.Node }

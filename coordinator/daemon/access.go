package daemon

import (
	"github.com/musterd/muster/coordinator/access"
	"github.com/musterd/muster/coordinator/audit"
	"github.com/musterd/muster/coordinator/rest"
)

// credentials serves the tokens and the role bindings of the cluster.
func (d *Daemon) credentials() *access.Keeper {
	peers := access.Peers{Roster: d.coordinator, Reach: d.coordinator.Reach, Ask: rest.Asker(d.security.peer)}
	return &access.Keeper{Store: audit.Noted(d.store), Table: d.coordinator.Rights(), Settle: peers.Settled, Logger: d.log}
}

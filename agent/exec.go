package agent

import (
	"fmt"

	"github.com/musterd/muster/grant"
)

// Exec implements rpc.Members, beside the owner's goroutine: whether the work of a member
// runs is the runner's to say.
func (a *Agent) Exec(e grant.Exec) (grant.ExecSession, error) {
	if a.runner == nil {
		return nil, fmt.Errorf("the agent of node %s starts no processes: %w", a.config.Node, grant.ErrNoExec)
	}
	s, err := a.runner.Exec(e)
	a.log.Info("exec", "tx", string(e.Tx), "member", e.Member, "attach", e.Attach, "tty", e.TTY, "error", err)
	return s, err
}

package agent

import (
	"context"
	"fmt"

	"github.com/musterd/muster/grant"
)

// ReadLog implements rpc.Logs. Output is read beside the owner's goroutine: the folders
// of the starts are the truth.
func (a *Agent) ReadLog(ctx context.Context, q grant.LogQuery, give func(at int64, data []byte) error) error {
	if a.runner == nil {
		return fmt.Errorf("the agent of node %s starts no processes: %w", a.config.Node, grant.ErrNoLog)
	}
	mayStart := func(ctx context.Context) (may bool, err error) {
		done := make(chan bool, 1)
		err = a.owner.ask(ctx, func(o *owner) {
			g, found := o.ledger.Lookup(q.Tx)
			done <- found && (g.State == grant.Reserved || g.State == grant.Waiting || g.State == grant.Held)
		})
		if err != nil {
			return false, err
		}
		return <-done, nil
	}
	return a.runner.ReadLog(ctx, q, mayStart, give)
}

package coordinator

import (
	"context"
	"fmt"
	"slices"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
)

// prepare writes the keys that a new term needs before it serves: the lease for
// this hour's request ids, and the configured limits.
func (l *term) prepare(ctx context.Context) error {
	lease, err := l.store.Grant(ctx, lead.RequestLeaseTTL)
	if err != nil {
		return fmt.Errorf("grant the request lease: %w", err)
	}
	l.apply(lead.LeaseAnswer{Lease: lease.ID})
	return l.prepareQuotas(ctx)
}

// prepareQuotas writes the quotas of the configuration. It runs before the loop.
func (t *term) prepareQuotas(ctx context.Context) error {
	ops := t.ConfigOps()
	for part := range slices.Chunk(ops, t.store.MaxTxnOps()) {
		result, err := t.store.Txn(ctx, record.Txn{If: []record.Compare{t.office}, Then: part})
		if err != nil {
			return fmt.Errorf("write the limits of the namespaces: %w", err)
		}
		if !result.Succeeded {
			return fmt.Errorf("write the limits of the namespaces: another leader was elected")
		}
		t.apply(lead.ConfigWritten{Count: len(part), Revision: result.Revision})
	}
	if len(ops) == 0 {
		t.apply(lead.ConfigWritten{})
	}
	return nil
}

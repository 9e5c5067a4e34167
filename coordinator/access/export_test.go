package access

import (
	"time"

	"github.com/musterd/muster/coordinator/record"
)

// NewTokenForTest draws a token without writing it.
func NewTokenForTest(user, role, tenant string) (text string, rec record.AccessToken) {
	now := time.Now()
	rec = record.AccessToken{ID: newID(), User: user, Role: role, Tenant: tenant, Creator: "test", Created: stamp(now)}
	drawn := newSecret(rec.ID)
	rec.Secrets = []record.TokenSecret{secretOf(drawn, now)}
	return drawn.text(), rec
}

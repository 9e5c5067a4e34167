package warehouse_test

import (
	"testing"

	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/test/postgres"
	"github.com/musterd/muster/test/servercert"
)

// TestADSNWithTLS: a server with a certificate is proven by the authority of the DSN, the
// connection is encrypted, and a server that another authority has signed is refused.
func TestADSNWithTLS(t *testing.T) {
	dsn, authority := postgres.StartTLS(t)
	w, err := warehouse.Open(t.Context(), dsn+"?sslmode=verify-full&sslrootcert="+authority)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var encrypted bool
	if err := w.SQL().QueryRowContext(t.Context(), "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").Scan(&encrypted); err != nil || !encrypted {
		t.Errorf("encrypted %t, %v", encrypted, err)
	}
	if _, err := w.Position(t.Context()); err != nil {
		t.Error(err)
	}
	other := servercert.Write(t, t.TempDir())
	if w, err := warehouse.Open(t.Context(), dsn+"?sslmode=verify-full&sslrootcert="+other.Cert); err == nil {
		_ = w.Close()
		t.Error("a server of another authority was taken")
	}
}

package warehouse_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/musterd/muster/coordinator/history/warehouse/warehousetest"
	"github.com/musterd/muster/test/postgres"
)

func TestMain(m *testing.M) { os.Exit(postgres.Main(m)) }

func sqliteDSN(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "history.db") }

func TestPostgreSQLKeepsTheContract(t *testing.T) {
	warehousetest.Run(t, func(t *testing.T) string { return postgres.Database(t) })
}

func TestSQLiteKeepsTheContract(t *testing.T) { warehousetest.Run(t, sqliteDSN) }

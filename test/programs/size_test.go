package programs_test

import (
	"debug/elf"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/test/house/budget"
	"github.com/musterd/muster/test/programs"
)

// TestProgramsKeepToTheirBudget holds the sizes of the programs, without symbols, to
// test/house/budget. The programs are those of all tests, so muster has the driver
// for GPUs too, as the released muster-dev has.
func TestProgramsKeepToTheirBudget(t *testing.T) {
	if programs.RaceEnabled() {
		t.Skip("programs with the race detector are no measure")
	}
	allowed, err := budget.Sum()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"muster", "muster-agent", "muster-coordinator", "muster-launch", "muster-shim"}
	dir := t.TempDir()
	if err := programs.Build(dir, names...); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		size, err := stripped(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.2f MB", name, float64(size)/1e6)
		if sentence := budget.Judge(allowed, name, size); sentence != "" {
			t.Error(sentence)
		}
	}
}

// stripped is the sum of a program's sections in the file without those that the
// linker leaves out with -s and -w: the size without symbols, but for the padding.
func stripped(name string) (int, error) {
	program, err := elf.Open(name)
	if err != nil {
		return 0, err
	}
	defer program.Close()
	sum := 0
	for _, s := range program.Sections {
		if s.Type != elf.SHT_NOBITS && s.Name != ".symtab" && s.Name != ".strtab" && !strings.HasPrefix(s.Name, ".debug") {
			sum += int(s.FileSize)
		}
	}
	return sum, nil
}

package health_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/devices/health"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/health.md")

// document holds the tables that come from the code, each between
// <!-- name --> and <!-- end name -->.
var document = filepath.Join("..", "..", "docs", "health.md")

func TestTheDocumentHasTheCodesTables(t *testing.T) {
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, table := range map[string]string{"xids": xidTable(), "policy": policyTable(t)} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end "+name+" -->\n"
		before, rest, found := strings.Cut(text, begin)
		old, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s has no place for the table of %s", document, name)
		}
		if old != table && !*update {
			t.Errorf("%s: the table of %s differs from the code's; go test ./devices/health -update rewrites it", document, name)
		}
		text = before + begin + table + end + after
	}
	if *update {
		if err := os.WriteFile(document, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// xidTable has a row for neighbours of one verdict.
func xidTable() string {
	var b strings.Builder
	b.WriteString("| XID | what happened | class | reset | why | source |\n|---|---|---|---|---|---|\n")
	var first, last uint64
	var verdict health.Verdict
	flush := func() {
		if last == 0 {
			return
		}
		numbers, reset := fmt.Sprint(first), ""
		if last > first {
			numbers = fmt.Sprintf("%d–%d", first, last)
		}
		if verdict.Reset {
			reset = "yes"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", numbers, verdict.Name, verdict.Effect, reset, verdict.Why, verdict.Source)
	}
	for number, v := range health.Catalog() {
		if last == 0 || number != last+1 || v != verdict {
			flush()
			first, verdict = number, v
		}
		last = number
	}
	flush()
	unknown := health.XID(0)
	fmt.Fprintf(&b, "| any other | %s | %s | | %s | %s |\n", unknown.Name, unknown.Effect, unknown.Why, unknown.Source)
	return b.String()
}

// policyTable has a row for each field of Policy.
func policyTable(t *testing.T) string {
	meanings := map[string]string{
		"SuspectFor":      "a suspect device is ok after this long without a fault",
		"Strikes":         "suspicious incidents that taint",
		"StrikeWindow":    "… within this time",
		"Incident":        "suspicious events closer to the last counted one than this are the same incident",
		"TaintFor":        "how long a device stays tainted after its last fault where time alone is the cure",
		"ProbationFor":    "how long a device is watched before it takes work",
		"DriverProbation": "the same where nothing but the driver was gone",
		"MaxHold":         "bound of the three above as relapses double them",
		"Forget":          "a taint within this time of the last probation's end, or during one, is a relapse",
		"HungGrace":       "how long the driver may be silent before its device is tainted",
		"CorrectedLimit":  "corrected memory errors that make suspect",
		"CorrectedWindow": "… within this time",
	}
	var b strings.Builder
	b.WriteString("| field | default | meaning |\n|---|---|---|\n")
	defaults := reflect.ValueOf(health.DefaultPolicy())
	for i := range defaults.NumField() {
		name := defaults.Type().Field(i).Name
		if meanings[name] == "" {
			t.Errorf("the document has no words for %s", name)
		}
		value := fmt.Sprint(defaults.Field(i).Interface())
		if d, is := defaults.Field(i).Interface().(time.Duration); is {
			value = strings.NewReplacer("m0s", "m", "h0m0s", "h").Replace(d.String())
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, value, meanings[name])
	}
	return b.String()
}

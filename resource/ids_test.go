package resource_test

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/resource"
)

const zeroNonce = "00000000000000000000000000000000"

func TestNewTxIDPrintsItsPartsInHexadecimal(t *testing.T) {
	got := resource.NewTxID("unit-7f3a", 255, 16, resource.Nonce{0xab, 15: 1})
	if want := resource.TxID("unit-7f3a.ff.10.ab000000000000000000000000000001"); got != want {
		t.Errorf("id is %s, want %s", got, want)
	}
}

func TestAttemptReturnsThePartsOfNewTxID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := resource.UnitUID(rapid.StringMatching(`[a-z0-9-]{1,40}`).Draw(t, "unit"))
		epoch := resource.Epoch(rapid.Int64Range(0, math.MaxInt64).Draw(t, "epoch"))
		counter := rapid.Uint64().Draw(t, "counter")
		var nonce resource.Nonce
		copy(nonce[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "nonce"))
		id := resource.NewTxID(unit, epoch, counter, nonce)
		u, e, c, err := id.Attempt()
		if err != nil || u != unit || e != epoch || c != counter {
			t.Fatalf("%s reads as %s, %d, %d, %v; want %s, %d, %d", id, u, e, c, err, unit, epoch, counter)
		}
		if !strings.HasSuffix(string(id), "."+hex.EncodeToString(nonce[:])) {
			t.Fatalf("%s does not end in the nonce %x", id, nonce)
		}
	})
}

func TestAttemptRefusesWhatNewTxIDDoesNotMake(t *testing.T) {
	const shape = "want UNIT.EPOCH.COUNTER.NONCE"
	for name, c := range map[string]struct{ id, want string }{
		"nothing":                            {"", shape},
		"a unit alone":                       {"u", shape},
		"a missing nonce":                    {"u.1.2", shape},
		"a missing unit":                     {".1.2." + zeroNonce, shape},
		"a fifth part":                       {"u.1.2." + zeroNonce + ".x", shape},
		"a unit with a dot":                  {"u.v.1.2." + zeroNonce, shape},
		"a short nonce":                      {"u.1.2.00", shape},
		"a long nonce":                       {"u.1.2." + zeroNonce + "00", shape},
		"an empty epoch":                     {"u..2." + zeroNonce, `epoch "" is not hexadecimal`},
		"a negative epoch":                   {"u.-1.2." + zeroNonce, `epoch "-1" is not hexadecimal`},
		"an epoch beyond 63 bits":            {"u.8000000000000000.2." + zeroNonce, `epoch "8000000000000000" is not hexadecimal`},
		"an empty counter":                   {"u.1.." + zeroNonce, `counter "" is not hexadecimal`},
		"a counter of words":                 {"u.1.two." + zeroNonce, `counter "two" is not hexadecimal`},
		"a negative counter":                 {"u.1.-2." + zeroNonce, `counter "-2" is not hexadecimal`},
		"a nonce of other letters":           {"u.1.2." + strings.Repeat("g", 32), `nonce "` + strings.Repeat("g", 32) + `" is not hexadecimal`},
		"an epoch with a plus":               {"u.+1.2." + zeroNonce, `want the spelling "u.1.2.` + zeroNonce + `"`},
		"an epoch of minus zero":             {"u.-0.2." + zeroNonce, `want the spelling "u.0.2.` + zeroNonce + `"`},
		"an epoch with a leading zero":       {"u.01.2." + zeroNonce, `want the spelling "u.1.2.` + zeroNonce + `"`},
		"a counter with a leading zero":      {"u.1.02." + zeroNonce, `want the spelling "u.1.2.` + zeroNonce + `"`},
		"an epoch in upper case":             {"u.A.2." + zeroNonce, `want the spelling "u.a.2.` + zeroNonce + `"`},
		"a nonce in upper case":              {"u.1.2." + strings.Repeat("F", 32), `want the spelling "u.1.2.` + strings.Repeat("f", 32) + `"`},
		"an epoch with a base":               {"u.0x1.2." + zeroNonce, `epoch "0x1" is not hexadecimal`},
		"an epoch with an underscore":        {"u.1_0.2." + zeroNonce, `epoch "1_0" is not hexadecimal`},
		"white space before the first digit": {"u. 1.2." + zeroNonce, `epoch " 1" is not hexadecimal`},
	} {
		t.Run(name, func(t *testing.T) {
			unit, epoch, counter, err := resource.TxID(c.id).Attempt()
			if want := `transaction id "` + c.id + `": ` + c.want; message(err) != want {
				t.Errorf("error is %v, want %s", err, want)
			}
			if unit != "" || epoch != 0 || counter != 0 {
				t.Errorf("refused, yet read as %s, %d, %d", unit, epoch, counter)
			}
		})
	}
}

func TestIncarnation(t *testing.T) {
	var unset resource.Incarnation
	set := resource.Incarnation{JournalID: "j1", BootID: "b1"}
	if !unset.IsZero() || set.IsZero() || (resource.Incarnation{BootID: "b1"}).IsZero() {
		t.Error("only the incarnation without both parts is unset")
	}
	if set.String() != "j1/b1" {
		t.Errorf("prints %s, want j1/b1", set)
	}
}

// FuzzTxID checks that no text panics and that a text that is read is exactly
// what NewTxID makes of its parts.
func FuzzTxID(f *testing.F) {
	for _, seed := range []string{"", "u.1.2." + zeroNonce, "u.+1.2." + zeroNonce, "u.1.2.3", "....", "u.-0.A." + zeroNonce} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		unit, epoch, counter, err := resource.TxID(text).Attempt()
		if err != nil {
			return
		}
		var nonce resource.Nonce
		if _, err := hex.Decode(nonce[:], []byte(text[len(text)-32:])); err != nil {
			t.Fatalf("%q is read, yet its nonce is not: %v", text, err)
		}
		if again := resource.NewTxID(unit, epoch, counter, nonce); string(again) != text {
			t.Errorf("%q reads as the parts of %q", text, again)
		}
	})
}

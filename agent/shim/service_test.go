package shim

import (
	"reflect"
	"strings"
	"testing"
)

func TestAUserIsReadAsItWasPrinted(t *testing.T) {
	for _, u := range []User{{}, {UID: 1001, GID: 1002}, {UID: 4294967294, GID: 1, Groups: []uint32{44, 27}}} {
		if got, err := ParseUser(u.String()); err != nil || !reflect.DeepEqual(got, u) {
			t.Errorf("%s is read as %+v: %v", u, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "want UID:GID", "1": "want UID:GID", "1:2": "want UID:GID", "1:2:3:4": "want UID:GID", "a:2:": `"a" is no number`, "-1:2:": `"-1"`, "1:2:3,": `""`, "01:2:": `"01"`, "4294967296:2:": `"4294967296"`,
	} {
		if u, err := ParseUser(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %+v: %v, want %q", text, u, err, want)
		}
	}
}

package samplefile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// configuration has a key of each sort.
type configuration struct {
	Name   string           `json:"name"`
	Group  group            `json:"group"`
	ByName map[string]group `json:"byName"`
	Other  []string         `json:"other"`
}

type group struct {
	User     string `json:"user"`
	Password string `json:"password"`
	On       bool   `json:"on"`
}

const sampled = `# The head of the file, about no key.

# The name. Default: the host's.
# name: a

group:
  # A user, and the password.
  user: u
  # password: p
  on: true

# Further groups.
byName: {}
# byName:
#   one:
#     # The user of one.
#     user: x

other: []
`

func TestASampleIsReadByItsComments(t *testing.T) {
	got, err := Keys(sampled, configuration{Group: group{User: "root"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []Key{
		{Path: "name", Type: "text", Text: "The name. Default: the host's.", Example: "a"},
		{Path: "group.user", Type: "text", Text: "A user, and the password.", Default: "root", Example: "u"},
		{Path: "group.password", Type: "text", Text: "A user, and the password.", Example: "p"},
		{Path: "group.on", Type: "boolean", Text: "A user, and the password.", Default: "false", Example: "true"},
		{Path: "byName.NAME.user", Type: "text", Text: "The user of one.", Example: "x"},
		{Path: "byName.NAME.password", Type: "text"},
		{Path: "byName.NAME.on", Type: "boolean", Default: "false"},
		{Path: "other", Type: "list of text"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

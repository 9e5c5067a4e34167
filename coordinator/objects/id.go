package objects

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource"
)

// ID is a place in the history of changes: behind the event Index of a revision,
// or behind all of a revision. Its text is the id of an event of a watch.
type ID struct {
	Revision resource.Revision
	Index    int // from 0; allOf: behind every event of the revision
}

// allOf is greater than every index.
const allOf = math.MaxInt

// AllOf is the place behind all of a revision.
func AllOf(r resource.Revision) ID { return ID{r, allOf} }

// String is REVISION.INDEX, or REVISION behind all of a revision.
func (id ID) String() string {
	text := strconv.FormatInt(int64(id.Revision), 10)
	if id.Index == allOf {
		return text
	}
	return text + "." + strconv.Itoa(id.Index)
}

// Compare is negative where id is before o.
func (id ID) Compare(o ID) int {
	return cmp.Or(cmp.Compare(id.Revision, o.Revision), cmp.Compare(id.Index, o.Index))
}

// ParseID is the inverse of ID.String.
func ParseID(text string) (ID, error) {
	revision, index, indexed := strings.Cut(text, ".")
	r, ok := number(revision)
	if !ok {
		return ID{}, errors.New("want a revision of the store, or REVISION.INDEX as the id of an event has it")
	}
	if !indexed {
		return AllOf(resource.Revision(r)), nil
	}
	i, ok := number(index)
	if !ok || i > math.MaxInt32 {
		return ID{}, fmt.Errorf("the index behind the point is not a whole number from 0 to %d", math.MaxInt32)
	}
	return ID{resource.Revision(r), int(i)}, nil
}

// number reads a whole number as strconv writes it: without sign, spaces or
// leading zeros.
func number(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == text
}

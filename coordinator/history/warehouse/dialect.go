package warehouse

import (
	"fmt"
	"strings"
	"time"
)

// sql is a statement with "?" for each argument, in the words of the dialect.
func (d Dialect) sql(statement string) string {
	if d == SQLite {
		return statement
	}
	var out strings.Builder
	for i, part := range strings.Split(statement, "?") {
		if i > 0 {
			fmt.Fprintf(&out, "$%d", i)
		}
		out.WriteString(part)
	}
	return out.String()
}

// instant is an instant as an argument; the zero Time is NULL.
func (d Dialect) instant(t time.Time) any {
	switch {
	case t.IsZero():
		return nil
	case d == SQLite:
		return t.UnixMilli()
	}
	return wholeMilliseconds(t)
}

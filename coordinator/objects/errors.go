package objects

// GoneError says that a place in the history cannot be gone on from: a reader
// has to begin anew.
type GoneError struct {
	Reason string
}

func (e *GoneError) Error() string { return e.Reason + ": read anew and watch from there" }

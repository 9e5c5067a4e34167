package lead

// must is for calls of the quota manager that only a broken invariant makes
// fail.
func must(err error) {
	if err != nil {
		panic("coordinator: " + err.Error())
	}
}

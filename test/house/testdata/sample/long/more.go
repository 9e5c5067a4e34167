package long

var more = []string{
	Lines,
	Lines,
	Lines,
	Lines,
	Lines,
	Lines,
	Lines,
	Lines,
	Lines,
	Lines,
	Lines,
	Lines,
	Lines,
	Lines,
	Lines,
	Lines,
	Lines,
}

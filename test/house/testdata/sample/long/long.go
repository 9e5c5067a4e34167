package long

// Lines and more are too many lines together.
const Lines = `
5
6
7
8
9
10
11
12
13
14
15
16
17
18
19
20
21
22
`

// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

// A Scanner scans a JSON text, or a stream of JSON objects, that arrives in chunks. It is not safe for concurrent use.
type Scanner struct {
	limits  Limits
	subject string
	stream  bool
	err     *Error

	state state
	// inKey reports whether the current string is a key, and rest is the remainder of a literal.
	inKey bool
	rest  string
	// stack has a bit for each open level: set for an object.
	stack [maxDepth / 64]uint64
	depth int
	// length is that of the current string or number.
	length int

	bytes, cost, values int64
	// texts is how many texts have ended: more than one in a stream.
	texts int64
	// before is the cost of the previous object in a stream, which may not have been decoded yet.
	before int64
}

type state uint8

const (
	stateValue        state = iota // A value must come.
	stateFirstElement              // A value or the end of the array.
	stateFirstKey                  // A key or the end of the object.
	stateKey                       // A key must come.
	stateColon
	stateAfter // A value of an object or array has ended.
	stateEnd   // The text has ended: white space, or in a stream the next object.
	stateString
	stateEscape
	stateHex4 // Four hexadecimal digits must come, then three, two, one.
	stateHex3
	stateHex2
	stateHex1
	stateLiteral
	stateMinus // The first digit of a number must come.
	stateZero  // A zero was the first digit.
	stateDigits
	statePoint // A digit must come after the point.
	stateFraction
	stateExponent // A sign or digit must come.
	stateSign     // A digit must come.
	statePower
)

// NewScanner returns a Scanner of one text. subject names it in errors: "answer", "list".
func NewScanner(subject string, l Limits) *Scanner { return newScanner(subject, l, false) }

// NewStreamScanner returns a Scanner of a stream of objects. The limits apply to each object.
func NewStreamScanner(subject string, l Limits) *Scanner { return newScanner(subject, l, true) }

func newScanner(subject string, l Limits, stream bool) *Scanner {
	return &Scanner{limits: l.withoutZeros(), subject: subject, stream: stream}
}

// Cost returns the cost of the text so far; in a stream, that of the current or the previous object, whichever is more.
func (s *Scanner) Cost() int64 { return max(s.total(), s.before) }

// total returns the cost of the current text.
func (s *Scanner) total() int64 { return s.cost + s.bytes*costByte }

// Complete reports whether the text has ended: only white space may follow, or in a stream another object.
func (s *Scanner) Complete() bool {
	switch s.state {
	case stateEnd:
		return s.err == nil
	case stateZero, stateDigits, stateFraction, statePower:
		return s.err == nil && s.depth == 0
	default:
		return false
	}
}

// Scan reads the next bytes. It returns how many of them may be passed on, and an *Error if not all may. From then on
// it returns that error.
func (s *Scanner) Scan(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	for i := 0; i < len(p); {
		if s.state == stateString {
			n := s.scanString(p[i:])
			i += n
			if s.err != nil {
				return i, s.err
			}
			continue
		}
		if !s.count(1) || !s.next(p[i]) {
			return i, s.err
		}
		i++
	}
	if !s.spend(0) { // For bytes outside tokens.
		return 0, s.err
	}
	return len(p), nil
}

// scanString reads the plain bytes of a string, and then one more byte. It returns how many may be passed on.
func (s *Scanner) scanString(p []byte) int {
	n, foreign := 0, 0
	for n < len(p) && plain[p[n]] {
		if p[n] >= 0x80 {
			foreign++
		}
		n++
	}
	// The limits are checked once for all of them. The exact position of a violation does not matter: nothing is passed on
	// then.
	s.length += n
	if n > 0 && (!s.withinLength() || !s.count(int64(n)) || !s.spend(int64(n+foreign*costNonASCII))) {
		return 0
	}
	if n == len(p) {
		return n
	}
	if !s.count(1) || !s.next(p[n]) {
		return n
	}
	return n + 1
}

// plain are the bytes that may occur in a string and neither end it nor escape anything.
var plain = func() (is [256]bool) { //nolint:gochecknoglobals // A constant.
	for c := range is {
		is[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return is
}()

// count counts bytes of the text.
func (s *Scanner) count(n int64) bool {
	if s.stream && s.state == stateEnd && s.values > 0 {
		s.before, s.bytes, s.cost, s.values = s.total(), 0, 0, 0 // The next object begins, with the white space before it.
	}
	if s.bytes += n; s.bytes > s.limits.Bytes {
		return s.refuse(LimitBytes, s.limits.Bytes)
	}
	return true
}

func (s *Scanner) spend(cost int64) bool {
	s.cost += cost
	if s.total() > s.limits.Cost {
		return s.refuse(LimitCost, s.limits.Cost)
	}
	return true
}

// value counts a value that begins.
func (s *Scanner) value(cost int64) bool {
	s.values++
	if s.values > s.limits.Values {
		return s.refuse(LimitValues, s.limits.Values)
	}
	return s.spend(cost)
}

func (s *Scanner) withinLength() bool {
	switch {
	case s.inKey && s.length > s.limits.Key:
		return s.refuse(LimitKey, int64(s.limits.Key))
	case !s.inKey && s.length > s.limits.String:
		return s.refuse(LimitString, int64(s.limits.String))
	}
	return true
}

func (s *Scanner) refuse(l Limit, most int64) bool {
	s.err = &Error{Subject: s.subject, Limit: l, Max: most}
	return false
}

func (s *Scanner) malformed() bool { return s.refuse(LimitSyntax, 0) }

// next reads a byte in any state, except plain bytes of a string.
func (s *Scanner) next(c byte) bool {
	switch s.state { //nolint:exhaustive // What is between values comes below.
	case stateString, stateEscape, stateHex4, stateHex3, stateHex2, stateHex1:
		return s.nextOfString(c)
	case stateLiteral:
		return s.nextOfLiteral(c)
	case stateMinus, stateZero, stateDigits, statePoint, stateFraction, stateExponent, stateSign, statePower:
		if done, ok := s.nextOfNumber(c); !done {
			return ok
		}
		s.ended() // c is the first byte after the number.
	}
	if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
		return true
	}
	return s.nextBetween(c)
}

// nextBetween reads a non-space byte between values.
func (s *Scanner) nextBetween(c byte) bool {
	switch s.state {
	case stateValue:
		return s.begin(c)
	case stateFirstElement:
		if c == ']' {
			return s.pop(false)
		}
		return s.begin(c)
	case stateFirstKey, stateKey:
		if c == '}' && s.state == stateFirstKey {
			return s.pop(true)
		}
		if c != '"' {
			return s.malformed()
		}
		s.state, s.inKey, s.length = stateString, true, 0
		return s.spend(costKey)
	case stateColon:
		s.state = stateValue
		return c == ':' || s.malformed()
	case stateAfter:
		return s.separator(c)
	default: // stateEnd
		return s.stream && c == '{' && s.begin(c) || s.malformed()
	}
}

// begin reads the first byte of a value.
func (s *Scanner) begin(c byte) bool {
	if s.stream && s.depth == 0 && c != '{' {
		return s.malformed()
	}
	s.inKey, s.length = false, 1
	switch {
	case c == '{':
		return s.push(true) && s.value(costObject)
	case c == '[':
		return s.push(false) && s.value(costArray)
	case !s.beginScalar(c):
		return s.malformed()
	}
	return s.value(costScalar)
}

// beginScalar reports whether c is the first byte of a string, a number or a literal.
func (s *Scanner) beginScalar(c byte) bool {
	switch {
	case c == '"':
		s.state, s.length = stateString, 0
	case c == '-':
		s.state = stateMinus
	case c == '0':
		s.state = stateZero
	case isDigit(c):
		s.state = stateDigits
	case c == 't':
		s.state, s.rest = stateLiteral, "rue"
	case c == 'f':
		s.state, s.rest = stateLiteral, "alse" //nolint:misspell // The rest of a literal.
	case c == 'n':
		s.state, s.rest = stateLiteral, "ull"
	default:
		return false
	}
	return true
}

func (s *Scanner) push(object bool) bool {
	if s.depth >= s.limits.Depth {
		return s.refuse(LimitDepth, int64(s.limits.Depth))
	}
	bit := uint64(1) << (s.depth % 64)
	if object {
		s.stack[s.depth/64] |= bit
		s.state = stateFirstKey
	} else {
		s.stack[s.depth/64] &^= bit
		s.state = stateFirstElement
	}
	s.depth++
	return true
}

func (s *Scanner) inObject() bool { return s.stack[(s.depth-1)/64]&(1<<((s.depth-1)%64)) != 0 }

func (s *Scanner) pop(object bool) bool {
	if s.inObject() != object {
		return s.malformed()
	}
	s.depth--
	s.ended()
	return true
}

// ended is called when a value has ended.
func (s *Scanner) ended() {
	s.state = stateAfter
	if s.depth == 0 {
		s.state = stateEnd
		s.texts++
	}
}

// separator reads what follows a value.
func (s *Scanner) separator(c byte) bool {
	switch {
	case c == '}':
		return s.pop(true)
	case c == ']':
		return s.pop(false)
	case c != ',':
		return s.malformed()
	case s.inObject():
		s.state = stateKey
	default:
		s.state = stateValue
	}
	return true
}

func (s *Scanner) nextOfString(c byte) bool {
	s.length++
	switch {
	case s.state == stateString && c == '"':
		s.endedString()
		return true
	case s.state == stateString && c == '\\':
		s.state = stateEscape
	case s.state == stateEscape && c == 'u':
		s.state = stateHex4
	case s.state == stateEscape && isEscaped(c):
		s.state = stateString
	case s.state >= stateHex4 && s.state < stateHex1 && isHex(c):
		s.state++
	case s.state == stateHex1 && isHex(c):
		s.state = stateString
	default: // A control character, or not an escape.
		return s.malformed()
	}
	return s.withinLength() && s.spend(1)
}

// endedString is called when a key or another string has ended.
func (s *Scanner) endedString() {
	if s.inKey {
		s.state = stateColon
		return
	}
	s.ended()
}

// isEscaped reports whether c alone may follow a backslash.
func isEscaped(c byte) bool {
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	}
	return false
}

func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (s *Scanner) nextOfLiteral(c byte) bool {
	if c != s.rest[0] {
		return s.malformed()
	}
	if s.rest = s.rest[1:]; s.rest == "" {
		s.ended()
	}
	return true
}

// nextOfNumber returns whether the number has ended before c, and if it has not, whether c may be part of it.
func (s *Scanner) nextOfNumber(c byte) (done, ok bool) {
	whole := s.state == stateZero || s.state == stateDigits
	switch {
	case isDigit(c):
		return false, s.digit(c)
	case c == '.' && whole:
		s.state = statePoint
	case (c == 'e' || c == 'E') && (whole || s.state == stateFraction):
		s.state = stateExponent
	case (c == '+' || c == '-') && s.state == stateExponent:
		s.state = stateSign
	case whole || s.state == stateFraction || s.state == statePower:
		return true, true
	default:
		return false, s.malformed()
	}
	return false, true
}

// digit reads a digit of a number.
func (s *Scanner) digit(c byte) bool {
	if s.length++; !s.withinLength() {
		return false
	}
	switch s.state { //nolint:exhaustive // In the others, a digit is one more of the same.
	case stateMinus:
		s.state = stateDigits
		if c == '0' {
			s.state = stateZero
		}
	case stateZero:
		return s.malformed()
	case statePoint:
		s.state = stateFraction
	case stateExponent, stateSign:
		s.state = statePower
	}
	return true
}

/// A text whose lines were broken between words, as one line with single spaces.
func flat(_ text: String) -> String { text.split(whereSeparator: \.isWhitespace).joined(separator: " ") }

/// Joins the lines of a wrapped text, with single spaces between words.
func unwrapped(_ text: String) -> String { text.split(whereSeparator: \.isWhitespace).joined(separator: " ") }

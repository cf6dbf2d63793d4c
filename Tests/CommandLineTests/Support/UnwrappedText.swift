/// Returns a text that was wrapped between words as one line with single spaces.
func unwrapped(_ text: String) -> String { text.split(whereSeparator: \.isWhitespace).joined(separator: " ") }

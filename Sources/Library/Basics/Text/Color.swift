/// What color adds to a text that says the same without it.
package enum Color: String, Sendable {
  case bold = "1"
  case faint = "2"
  case red = "31"
  case green = "32"
  case yellow = "33"
}

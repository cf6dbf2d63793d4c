import KeychainFormats

/// How wide a text of the picture is at the most, in the picture's own units.
///
/// Measured with DejaVu Sans, whose letters are as wide as Verdana's and wider than those of the other fonts that
/// systems show pages in: what has room in it has room in them. Counts are bold.
///
/// Source: the advance widths of DejaVuSans.ttf and DejaVuSans-Bold.ttf 2.37 (table `hmtx`), in 2,048ths of an em, from
/// U+0020 to U+007E.
enum LabelWidth {
  /// The size of the picture's text in its style sheet.
  static let fontSize = 13.0

  /// - Parameter text: As it is handed to the page, which spells out what would not be seen.
  static func of(_ text: String, isBold: Bool = false) -> Double {
    let table = isBold ? bold : regular
    let units = HostileText.shown(text).unicodeScalars.reduce(0) { sum, scalar in
      let place = Int(scalar.value) - 0x20
      return sum + (table.indices.contains(place) ? table[place] : widest)
    }
    return Double(units) / 2_048 * fontSize
  }

  /// The beginning of a text that has room, with an ellipsis where something is left out.
  static func fitted(_ text: String, to room: Double) -> String {
    guard of(text) > room else { return text }
    var kept = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      kept.append(scalar)
      guard of(String(kept) + "…") <= room else { break }
    }
    return String(String.UnicodeScalarView(kept.dropLast())) + "…"
  }

  /// Of characters outside the table: an ideograph is an em wide, an emoji a third more.
  private static let widest = 2_900

  private static let regular = [
    651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690, 1303, 1303, 1303, 1303, 1303,
    1303, 1303, 1303, 1303, 1303, 690, 690, 1716, 1716, 1716, 1087, 2048, 1401, 1405, 1430, 1577, 1294, 1178, 1587,
    1540, 604, 604, 1343, 1141, 1767, 1532, 1612, 1235, 1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799,
    690, 799, 1716, 1024, 1024, 1255, 1300, 1126, 1300, 1260, 721, 1300, 1298, 569, 569, 1186, 569, 1995, 1298, 1253,
    1300, 1300, 842, 1067, 803, 1298, 1212, 1675, 1212, 1212, 1075, 1303, 690, 1303, 1716,
  ]

  private static let bold = [
    713, 934, 1067, 1716, 1425, 2052, 1786, 627, 936, 936, 1071, 1716, 778, 850, 778, 748, 1425, 1425, 1425, 1425, 1425,
    1425, 1425, 1425, 1425, 1425, 819, 819, 1716, 1716, 1716, 1188, 2048, 1585, 1561, 1503, 1700, 1399, 1399, 1681,
    1714, 762, 762, 1587, 1305, 2038, 1714, 1741, 1501, 1741, 1577, 1475, 1397, 1663, 1585, 2259, 1579, 1483, 1485, 936,
    748, 936, 1716, 1024, 1024, 1382, 1466, 1214, 1466, 1389, 891, 1466, 1458, 702, 702, 1362, 702, 2134, 1458, 1407,
    1466, 1466, 1010, 1219, 979, 1458, 1335, 1892, 1321, 1335, 1192, 1458, 748, 1458, 1716,
  ]
}

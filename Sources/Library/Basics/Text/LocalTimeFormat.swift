#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Formats dates for display, in local time. Machine-readable output uses `Timestamp`.
package enum LocalTimeFormat {
  /// Returns the date and time in this machine's time zone (`TZ`): "2026-11-20 18:04 CET".
  package static func local(_ date: KeychainDate) -> String {
    guard let fields = fields(of: date) else { return "an unknown time" }
    let zone = fields.tm_zone.map { String(cString: $0) } ?? ""
    return zone.isEmpty ? minutes(fields) : minutes(fields) + " " + zone
  }

  /// Returns the day in this machine's time zone: "2026-11-20".
  package static func localDay(_ date: KeychainDate) -> String {
    fields(of: date).map(day) ?? "?"
  }

  private static func fields(of date: KeychainDate) -> tm? {
    guard var seconds = time_t(exactly: date.secondsSince1970.rounded(.down)) else { return nil }
    var result = tm()
    return localtime_r(&seconds, &result) == nil ? nil : result
  }

  private static func minutes(_ fields: tm) -> String {
    "\(day(fields)) \(twoDigits(fields.tm_hour)):\(twoDigits(fields.tm_min))"
  }

  private static func day(_ fields: tm) -> String {
    let year = String(Int(fields.tm_year) + 1900)
    let padding = String(repeating: "0", count: max(0, 4 - year.count))
    return "\(padding)\(year)-\(twoDigits(fields.tm_mon + 1))-\(twoDigits(fields.tm_mday))"
  }

  private static func twoDigits(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

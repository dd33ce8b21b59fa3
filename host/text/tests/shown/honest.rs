//! Text of people, which stays readable: each comes out as it went in, in every form.

/// Sentences of languages, some with what is hostile elsewhere: joiners, marks, full width, single letters that look like
/// others, words of another script among them.
const HONEST: &[&str] = &[
    // English, with typography and units.
    "It’s “done” – mostly… 50 %, ½ of 3⁄4, 10 kΩ at 20 °C, naïve café, 5 µm, m², x² + y², ™ and ©",
    "Wi-Fi, e-mail to jo.doe+x@example.org, https://example.org/a_b-c?d=e#f and C:\\new\\file",
    // French, with its spaces; German, Turkish, Vietnamese, Czech, Polish.
    "Voulez-vous payer 10\u{a0}€\u{202f}? «\u{a0}Oui\u{a0}», répond-il\u{a0}: œuvre, naïf, 1ᵉʳ",
    "Grüße aus Köln: Straße, Äpfel, süß",
    "Kapıyı kapatır mısın? İstanbul’dan ışık",
    "Tôi không biết tiếng Việt, nhưng tôi đang học. Ta\u{302}\u{301}t ca\u{309}",
    "Příliš žluťoučký kůň úpěl ďábelské ódy; zażółć gęślą jaźń",
    // Russian and Ukrainian, with single letters, initials, and compounds with Latin.
    "Перевести 100 рублей? А я и не знал, что у вас есть счёт, с которого о нём пишут.",
    "А.С. Пушкин и Н.В. Гоголь: IP-адрес, Wi-Fi-сеть, JSON-файл, т.е. и/или",
    "Їхати чи не їхати: ось у чому річ. Її сестра є тут",
    "Сара, как мир?",
    // Greek.
    "Θέλετε να πληρώσετε; Ο και η το έχουν: ΝΑΙ ή ΟΧΙ, 5 ευρώ",
    // Armenian, Georgian.
    "Բարև ձեզ, ինչպե՞ս եք",
    "გამარჯობა, როგორ ხართ?",
    // Hebrew with and without points; Arabic; Persian with its separator.
    "האם לשלם 100 שקלים? זה סוס",
    "בְּרֵאשִׁית בָּרָא אֱלֹהִים",
    "هل تريد أن تدفع ١٠٠ دولار؟",
    "می\u{200c}خواهم ۱۲ کتاب بخرم",
    // Hindi, Bengali, Tamil, with joiners behind viramas; Thai, Tibetan.
    "क्या आप १०० रुपये देना चाहते हैं? क्\u{200d}ष और क्\u{200c}ष",
    "আমি বাংলায় গান গাই, ৫০ টাকা",
    "நான் தமிழ் பேசுகிறேன்",
    "คุณต้องการจ่ายเงินหรือไม่ ก็ได้ น้ำ",
    "བཀྲ་ཤིས་བདེ་ལེགས།",
    // Japanese with Latin words, full width and the wide space; Chinese; Korean.
    "Ｔシャツを１０枚、API経由で注文しますか？　はい：OK／NG ﾊﾝｶｸ ｶﾞ",
    "您想支付100元吗？请使用 GitHub 账号：user。二〇二四年",
    "결제하시겠습니까? GitHub에서 확인하세요 ㅋㅋ",
    // Emoji: sequences, tones, flags, keycaps.
    "👩\u{200d}👩\u{200d}👧 ❤\u{fe0f} 👍🏽 🇩🇪 1\u{fe0f}\u{20e3} 🏳\u{fe0f}\u{200d}🌈 ☎\u{fe0e} 🧑\u{200d}💻",
    // Mathematics.
    "𝑥 ≤ ∑ β · π/2, Δt, λ, ∀ε ∃δ",
    "",
];

#[test]
fn honest_text_stays_as_it_is() {
    let mut wrong = Vec::new();
    for honest in HONEST {
        let written = serde_json::Value::from(*honest).to_string();
        wrong.extend((text::line(honest) != *honest).then(|| text::line(honest)));
        wrong.extend((text::json(&written) != written).then(|| text::json(&written).into()));
        assert_eq!(text::block(honest, "") == format!("{honest}\n"), text::line(honest) == *honest);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What this costs: honest text that is written out, since it cannot be told from a forgery. Nothing of it is lost.
#[test]
fn what_is_written_out_though_it_may_be_meant_well() {
    for (honest, shown) in [
        // One word, which is wholly like ASCII, and nothing around that says what it is.
        ("Сара", r"\u{421}\u{430}\u{440}\u{430}"),
        ("the α-helix", r"the \u{3b1}-helix"),
        ("α版", r"\u{3b1}版"),
        // The flag of a part of a country, made of characters that are not seen.
        ("🏴\u{e0067}\u{e007f}", r"🏴\u{e0067}\u{e007f}"),
        // A name with a chosen form of an ideograph.
        ("葛\u{e0100}城", r"葛\u{e0100}城"),
        ("в\u{a0}доме", r"в\u{a0}доме"),
    ] {
        assert_eq!(text::line(honest), shown);
    }
}

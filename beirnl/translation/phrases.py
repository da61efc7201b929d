"""What models write around, before or in place of a translation, in the languages that they do it in."""

import re

_ASSENT = r"(?:sure|certainly|of course|okay|natuurlijk|zeker|uiteraard|natürlich|gerne|bien sûr|certo|claro)"
_HERE = (
    r"here(?:['’]s| is| are)|below is|this is|hier(?:onder)? (?:is|volgt|vind je|vindt u|ist)|dit is|das ist"
    r"|voici|ecco|aquí (?:está|tienes|tiene)|aqui está|the|de|my|een|la|die|a"
)
_TRANSLATION = (
    r"translation|translated (?:text|query|document|version)|vertaling|vertaalde \w+|übersetzung|traduction"
    r"|traduzione|traducción|tradução"
)
#: The beginning of an answer that announces the translation.
PREAMBLE = re.compile(
    rf"\W*(?:{_ASSENT}\s*[,!.:]+\s*)?(?:(?:{_HERE})\s+(?:\w+\s+){{0,3}}?)?(?:{_TRANSLATION})\b[^.!?\n]{{0,60}}:"
    rf"|\W*{_ASSENT}\s*[!,:]\s+(?:here|i |hier|ik |ich |voici|ecco|aquí|aqui)"
    r"|(?:以下是|这是|下面是)[^。\n]{0,20}[译訳]|(?:翻译|译文|翻訳)(?:如下)?[:：]",
    re.IGNORECASE,
)
#: What it ends with after the translation.
CLOSING = re.compile(
    r"(?:i hope (?:this|that) helps|let me know if|feel free to ask|hope this (?:translation )?helps"
    r"|laat (?:het )?me (?:gerust )?weten (?:als|of)|ik hoop dat (?:dit|deze vertaling)"
    r"|\((?:note|opmerking|noot|hinweis|nota|remarque)\s*:|\n\W*(?:translator['’]s |translation )?notes?\s*:"
    r"|\n\W*(?:opmerking|toelichting|hinweis|anmerkung|nota|remarque)\s*:)",
    re.IGNORECASE,
)
#: One of these stands in it, or, with a colon, one of those.
CLOSING_HINTS = ("hope", "let me know", "feel free", "weten", "ik hoop")
NOTE_HINTS = ("note", "noot", "nota", "opmerking", "toelichting", "hinweis", "anmerkung", "remarque")
CLOSING_LENGTH = 300  # characters at the end in which it is looked for

_SORRY = (
    r"(?:i['’]?m|i am) (?:very |so )?(?:sorry|afraid|unable|not able)\b"
    r"|i (?:cannot|can['’]?t|can not|won['’]?t)\b"
    r"|(?:sorry|(?:my )?apologies|i apologi[sz]e)\b[^.\n]{0,20}\b(?:but|i)\b|unfortunately,? i\b"
    r"|(?:het )?spijt me\b|(?:sorry|excuses)\b[^.\n]{0,30}\b(?:ik|maar)\b|helaas\b[^.\n]{0,10}\bik\b"
    r"|ik kan\b[^.\n]{0,60}\bniet\b|ik ben niet in staat\b"
    r"|es tut mir leid\b|leider\b[^.\n]{0,10}\bich\b|ich kann\b[^.\n]{0,60}\bnicht\b"
    r"|(?:je suis )?désolée?\b|je ne peux\b|mi dispiace\b|non posso\b|lo siento\b|no puedo\b"
    r"|desculpe\b|não posso\b|抱歉|对不起|申し訳"
)
_TASK = (
    r"translat|assist|help|provid|fulfil|compl(?:y|ete)|request|content|generat|process|do (?:that|this|so)"
    r"|access|engage|vertal|verzoek|inhoud|voldoen|verwerken|übersetz|anfrage|inhalt|hilf|helfen|tradui"
    r"|aider|demande|contenu|tradur|aiutar|richiesta|ayudar|traducir|solicitud|ajudar|traduzir"
    r"|翻译|翻訳|帮助|提供|协助"
)
#: The beginning of an answer that declines.
REFUSAL = re.compile(
    rf"\W*(?:(?:{_SORRY})[^\n]{{0,100}}?(?:{_TASK})"
    r"|as an? (?:ai|(?:large )?language model)\b|als (?:een )?(?:ai\b|taalmodel|ai-\w+)"
    r"|als (?:ki\b|sprachmodell)|en tant qu['’](?:ia|une? mod)|come modello|como modelo)",
    re.IGNORECASE,
)

#: Tags of prompts and chat templates.
TAGS = re.compile(
    r"</?\s*(?:title|body|query|document|text|source|translation)\s*[/\\]?\s*>|<\|\w+\|>|<(?:start|end)_of_turn>"
    r"|</?(?:s|think|output|answer)>"
)
LABELS = (
    "QUERY", "DOCUMENT", "English", "Dutch", "German", "French", "Italian", "Spanish", "Title", "Translation",
    "Vertaling", "Nederlands", "Engels", "Titel", "Übersetzung", "Traduction", "Traduzione", "Traducción",
)  # fmt: skip
LABEL = re.compile(rf"\b(?:{'|'.join(LABELS)}):(?=\s|$)")
#: Other traces of prompts, chat templates and escapes.
TRACES = ("```", "[INST]", "[/INST]", "<<SYS>>", "Provide only the translation", "\\n", "\\u00", '\\"')
ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#\d{1,5});")

#: Instructions that a document gives to whoever reads it, with a word that all of them contain.
COMMAND = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b[^.!?\n]{0,40}\b(?:instructions?|prompts?|rules|directions)\b"
    r"|\b(?:negeer|vergeet)\b[^.!?\n]{0,40}\b(?:instructies?|aanwijzingen|opdrachten|regels|prompts?)\b"
    r"|\b(?:ignorier\w*|vergiss)\b[^.!?\n]{0,40}\b(?:anweisung|regeln|prompt)",
    re.IGNORECASE,
)
COMMAND_HINTS = ("ignor", "disregard", "forget", "override", "negeer", "vergeet", "vergiss")
#: Stems of which a faithful translation of such an instruction has one, by target language.
COMMAND_STEMS = {
    "en": ("instruct", "prompt", "rule", "direction", "command", "order", "guideline"),
    "nl": ("instruct", "aanwijzing", "opdracht", "regel", "prompt", "voorschrift", "richtlijn", "bevel"),
    "de": ("anweisung", "instrukt", "regel", "prompt", "vorgabe", "richtlinie", "befehl", "anleitung"),
    "fr": ("instruct", "consigne", "règle", "prompt", "directive", "ordre", "indication"),
    "it": ("istruzion", "regol", "prompt", "direttiv", "ordin", "indicazion", "consegn"),
    "es": ("instrucci", "regla", "prompt", "directri", "orden", "órden", "indicaci", "norma"),
    "pt": ("instruç", "regra", "prompt", "diretri", "ordem", "ordens", "orientaç", "comando"),
    "fy": ("ynstruk", "oanwizing", "opdracht", "regel", "prompt", "rjochtline"),
    "af": ("instruks", "aanwysing", "opdrag", "reël", "prompt", "riglyn"),
}  # fmt: skip
#: Words with which questions begin, by source language. Where the target is one of COMMAND_STEMS, a question
#: keeps its mark.
QUESTION_WORDS = {
    "en": ("what", "who", "whom", "whose", "which", "when", "where", "why", "how", "is", "are", "was", "were",
           "do", "does", "did", "can", "could", "should", "would", "will", "has"),
    "nl": ("wat", "wie", "welk", "welke", "wanneer", "waar", "waarom", "hoe", "is", "zijn", "was", "waren",
           "doet", "kan", "kunnen", "moet", "zou", "zal", "heeft", "hebben"),
    "de": ("was", "wer", "wen", "wem", "wie", "wo", "wann", "warum", "welche", "welcher", "welches", "ist",
           "sind", "war", "waren", "kann", "können", "soll", "hat"),
    "fr": ("que", "qui", "quel", "quelle", "quels", "quelles", "comment", "où", "quand", "pourquoi",
           "combien", "est-ce", "qu'est-ce"),
    "it": ("che", "chi", "quale", "quali", "come", "dove", "quando", "perché", "quanto", "quanti", "cosa"),
    "es": ("qué", "quién", "quiénes", "cuál", "cuáles", "cómo", "dónde", "cuándo", "cuánto", "cuántos"),
    "pt": ("que", "quem", "qual", "quais", "como", "onde", "quando", "quanto", "quantos"),
}  # fmt: skip

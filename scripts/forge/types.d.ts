// In an installed home, index.d.ts itself stands here.
export * from '../../index';

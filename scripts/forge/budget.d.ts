import { budget } from './types';
export = budget;
